import { constants } from 'node:os';

/** Returns the exit code that a shell would report: 128 + signal if a signal ended the process. */
export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}
