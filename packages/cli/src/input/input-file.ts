import { readFileSync, readSync, statSync } from 'node:fs';
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

/** Reads JSON from a file, or from standard input for `-`. The service checks the content. */
export function jsonFrom(file: string): unknown {
  const from = file === '-' ? 'standard input' : file;
  const text = readInput(file).toString('utf8');
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Failure(`${from} is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

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

/**
 * Returns the prompt that an argument names: the text of a file, of standard input for `-`, or the argument itself.
 * @throws Failure if the argument looks like the name of a file that does not exist
 */
export function readPrompt(source: string, readStandardInput = () => readInput('-').toString('utf8')): string {
  if (source === '-') return readStandardInput();
  const stat = statSync(source, { throwIfNoEntry: false });
  if (stat?.isDirectory()) throw new Failure(`${source} is a folder; name a file with the prompt`);
  if (stat) return readText(source);
  // A single word with a slash or a file extension is probably a mistyped file name and not a prompt.
  if (!/\s/.test(source) && /[/\\]|\.[a-z]{1,8}$/i.test(source)) throw new Failure(`there is no file ${source}`);
  return source;
}

function readText(file: string): string {
  const bytes = readInput(file);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Failure(`${file} is not UTF-8 text`);
  }
}
