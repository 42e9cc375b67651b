import { Failure } from '../exits/failure.ts';
import { readInput } from './input-file.ts';

/**
 * Returns the text of a file or of standard input, without one line break at its end. The value is never an argument, because other users
 * of the machine can read arguments.
 */
export function readSecretValue(file: string | undefined): string {
  if (file === undefined && process.stdin.isTTY)
    throw new Failure('the value comes from standard input or a file: add < FILE or --file FILE to the command', 2);
  const bytes = readInput(file ?? '-');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '');
  } catch {
    throw new Failure('the value is not UTF-8 text; encode it, for example as base64');
  }
}
