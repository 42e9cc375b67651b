import { constants } from 'node:os';

/** Returns the exit code as shells do: 128 + signal if a signal ended the process. */
export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}
