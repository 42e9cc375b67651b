import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { lastPart } from '@runyard/contract/wire/shorten';

/** Thrown if the output of git is larger than its limit. */
export class OutputTooLarge extends Error {}

export interface GitOptions {
  cwd: string;
  env: Readonly<Record<string, string>>;
  signal: AbortSignal;
  input?: string;
  /** Writes the output to a file of at most `maxBytes`. Absent: `git` returns the output. */
  to?: { file: string; maxBytes: number };
  /** Called with each piece of the output; `git` then returns an empty text. If this function returns false, the git process is killed. */
  each?: (piece: string) => boolean;
  /**
   * Encoding of input and output. `latin1` does not change file names that are not UTF-8, because this encoding has one character for each
   * byte.
   */
  encoding?: 'utf8' | 'latin1';
}

/** Maximum size of the output that `git` returns. The names of a few hundred thousand files fit. */
const maxReturnedBytes = 32 * 1024 * 1024;

/** Runs git and returns its output. If git fails, throws an error with git's message. */
export async function git(args: readonly string[], options: GitOptions): Promise<string> {
  const { cwd, env, signal, to, each, encoding = 'utf8' } = options;
  signal.throwIfAborted();
  const child = spawn('git', args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
  const closed = once(child, 'close') as Promise<[number | null]>;
  closed.catch(() => {});
  const stop = () => child.kill('SIGKILL');
  signal.addEventListener('abort', stop, { once: true });
  let errorOutput = '';
  let output = '';
  child.stdin.on('error', () => {});
  child.stdin.end(options.input ?? '', encoding);
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errorOutput = lastPart(errorOutput + text, 1_000);
  });
  try {
    if (each !== undefined) {
      for await (const piece of child.stdout.setEncoding(encoding)) if (!each(piece as string)) return '';
    } else if (to !== undefined)
      await pipeline(child.stdout, bounded(to.maxBytes), createWriteStream(to.file, { mode: 0o600 }));
    else for await (const chunk of child.stdout.pipe(bounded(maxReturnedBytes)).setEncoding(encoding)) output += chunk;
    const [code] = await closed;
    signal.throwIfAborted();
    if (code !== 0) throw new Error(`git ${args[0]} ended with ${code}: ${errorOutput.trim()}`);
    return output;
  } finally {
    signal.removeEventListener('abort', stop);
    stop();
  }
}

function bounded(maxBytes: number): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > maxBytes) done(new OutputTooLarge(`more than ${maxBytes} bytes`));
      else done(null, chunk);
    },
  });
}
