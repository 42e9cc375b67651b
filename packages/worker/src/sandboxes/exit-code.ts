import { constants } from 'node:os';

/** Exit code as shells tell it: 128 + signal where a signal ended the process. */
export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}
