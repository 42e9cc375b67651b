import { ApiError, ConnectionError } from '@runyard/client';
import { Failure } from '../exits/failure.ts';
import { describeProblem } from '../service/connect.ts';
import { harmless } from '../terminal/harmless.ts';

/** Prints on standard error why a command failed. Returns the exit code. */
export function reportFailure(error: unknown): number {
  process.stderr.write(`runyard: ${harmless(describe(error))}\n`);
  return error instanceof Failure ? error.exitCode : 1;
}

function describe(error: unknown): string {
  if (error instanceof Failure) return error.message;
  if (error instanceof ApiError) return describeProblem(error);
  if (error instanceof ConnectionError) return `${error.message}. See: bin/runyard status`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
