import { readFileSync } from 'node:fs';
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

/** Reads a file, or standard input for `-`. @throws Failure that says why it cannot be read */
export function readInput(file: string, exitCode = 1): Buffer {
  try {
    return readFileSync(file === '-' ? 0 : file);
  } catch (error) {
    throw new Failure(unreadable(file === '-' ? 'standard input' : file, error), exitCode);
  }
}
