import { readFileSync, readSync } from 'node:fs';
import { isatty } from 'node:tty';
import { Failure } from '../exits/failure.ts';

/** Returns a sentence that says why a file or folder could not be read. The sentence begins with the name of the file or folder. */
export function unreadable(name: string, error: unknown): string {
  switch ((error as NodeJS.ErrnoException | undefined)?.code) {
    case 'ENOENT':
      return `there is no file ${name}`;
    case 'EISDIR':
      return `${name} is a folder; name a file`;
    case 'EACCES':
    case 'EPERM':
      return `cannot read ${name}: this user has no permission to read it`;
    default:
      return `cannot read ${name}: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** If standard input has no data yet, it is read again after this number of milliseconds. */
const pauseMs = 20;

/**
 * Reads a descriptor to its end, even if the descriptor is non-blocking. Standard input may be non-blocking, because Node changes it
 * when `process.stdin` is opened, and other programs may do the same.
 */
function readToEnd(descriptor: number): Buffer {
  const chunks: Buffer[] = [];
  const clock = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    const chunk = Buffer.allocUnsafe(64 * 1024);
    try {
      const length = readSync(descriptor, chunk);
      if (length === 0) return Buffer.concat(chunks);
      chunks.push(chunk.subarray(0, length));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      Atomics.wait(clock, 0, 0, pauseMs);
    }
  }
}

function readStandardInput(): Buffer {
  if (isatty(0)) process.stderr.write('runyard: reading from the terminal; end with Ctrl-D on a line of its own\n');
  return readToEnd(0);
}

/** Reads a file, or standard input for `-`. @throws Failure that says why it cannot be read */
export function readInput(file: string, exitCode = 1): Buffer {
  try {
    return file === '-' ? readStandardInput() : readFileSync(file);
  } catch (error) {
    throw new Failure(unreadable(file === '-' ? 'standard input' : file, error), exitCode);
  }
}
