import { pino } from 'pino';

/** Log without output, for workers that run in the process of a test. */
export const silentLog = pino({ level: 'silent' });
