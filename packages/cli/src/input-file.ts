import { readFileSync } from 'node:fs';
import { isatty } from 'node:tty';
import { Failure } from './failure.ts';

/** Returns why a file or folder could not be read, as a sentence that begins with its name. */
export function unreadable(name: string, error: unknown): string {
  switch ((error as NodeJS.ErrnoException | undefined)?.code) {
    case 'ENOENT':
      return `there is no file ${name}`;
    case 'EISDIR':
      return `${name} is a folder; name a file`;
    case 'EACCES':
    case 'EPERM':
      return `cannot read ${name}: this user has no permission for it`;
    default:
      return `cannot read ${name}: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/**
 * Reads standard input. A terminal is opened again: once Node has made `process.stdin`, its descriptor does not block, and reading fails
 * with EAGAIN.
 */
function readStandardInput(): Buffer {
  if (!isatty(0)) return readFileSync(0);
  process.stderr.write('runyard: reading from the terminal; end with Ctrl-D on a line of its own\n');
  return readFileSync('/dev/tty');
}

/** Reads a file, or standard input for `-`. @throws Failure that says why it cannot be read */
export function readInput(file: string, exitCode = 1): Buffer {
  try {
    return file === '-' ? readStandardInput() : readFileSync(file);
  } catch (error) {
    throw new Failure(unreadable(file === '-' ? 'standard input' : file, error), exitCode);
  }
}
