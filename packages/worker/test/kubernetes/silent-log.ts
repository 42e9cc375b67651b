import { pino } from 'pino';

/** For workers in the process of a test. */
export const silentLog = pino({ level: 'silent' });
