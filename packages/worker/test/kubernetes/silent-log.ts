import { pino } from 'pino';

/** A log without output, for workers that run in the process of a test. */
export const silentLog = pino({ level: 'silent' });
