import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { runCommand } from '../commands/run-command.ts';
import type { WorkerCache } from './worker-cache.ts';

/*
 * A mirror is the newest commit of a repository and its files, as the line `COMMIT\n` and a pack of git. Git runs in the sandbox
 * only, and it names each object by the hash of its content: a damaged or forged mirror gives no other files than the code host.
 */

export interface MirrorOptions {
  readonly cache: WorkerCache;
  /** Name of the mirror in the cache. */
  readonly name: string;
  /** Options of git in front of each subcommand. */
  readonly gitOptions: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/** The ref of the mirror's commit while git asks the code host for newer commits. */
const mirrorRef = 'refs/runyard/mirror';
const lineBytes = 41;

/**
 * Fills the folder `target`, which does not exist yet, from the mirror and with later commits of the code host. The result equals a
 * shallow clone of the branch. False: there is no mirror, or it could not be used; the folder may contain files then.
 */
export async function cloneFromMirror(
  target: string,
  origin: { readonly url: string; readonly branch: string },
  options: MirrorOptions,
): Promise<{ readonly commit: string } | undefined> {
  const { env, signal, gitOptions } = options;
  const cached = await options.cache.get(options.name, signal);
  if (cached === undefined) return undefined;
  const git = async (cwd: string, ...args: string[]): Promise<boolean> =>
    (await runCommand({ argv: ['git', ...gitOptions, ...args], cwd, env, signal })).exitCode === 0;
  try {
    const { commit, pack } = await readMirror(cached.content);
    const { url, branch } = origin;
    const isFilled =
      (await git('/', 'init', '--quiet', `--initial-branch=${branch}`, '--', target)) &&
      (await indexPack(pack, target, options)) &&
      (await writeShallow(target, commit)) &&
      (await git(target, 'update-ref', mirrorRef, commit)) &&
      (await git(target, 'remote', 'add', '--no-tags', '-t', branch, 'origin', url)) &&
      (await git(target, 'fetch', '--quiet', '--depth', '1', 'origin')) &&
      (await git(target, 'update-ref', '-d', mirrorRef)) &&
      (await git(target, 'symbolic-ref', 'refs/remotes/origin/HEAD', `refs/remotes/origin/${branch}`)) &&
      (await git(target, 'checkout', '--quiet', '-b', branch, '--track', `origin/${branch}`));
    return isFilled ? { commit } : undefined;
  } catch {
    signal.throwIfAborted();
    return undefined;
  } finally {
    cached.content.destroy();
  }
}

/** Keeps the checked out commit of a clone as the mirror of its repository. */
export async function keepMirror(clone: string, commit: string, options: MirrorOptions): Promise<void> {
  await options.cache.put(options.name, Readable.from(mirrorOf(clone, commit, options)), options.signal);
}

async function* mirrorOf(clone: string, commit: string, options: MirrorOptions): AsyncGenerator<Buffer> {
  const { gitOptions, env, signal } = options;
  const child = spawn('git', [...gitOptions, 'pack-objects', '--revs', '--stdout', '--quiet', '--shallow'], {
    cwd: clone,
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
    signal,
  });
  const closed = once(child, 'close') as Promise<[number | null]>;
  closed.catch(() => {});
  child.stdin.on('error', () => {});
  child.stdin.end(`${commit}\n`);
  try {
    yield Buffer.from(`${commit}\n`);
    for await (const chunk of child.stdout) yield chunk as Buffer;
    const [code] = await closed;
    if (code !== 0) throw new Error(`git pack-objects ended with ${code}`);
  } finally {
    child.kill('SIGKILL');
  }
}

/** Takes the first line. Throws if it is no commit. */
async function readMirror(content: Readable): Promise<{ commit: string; pack: AsyncIterable<Buffer> }> {
  const chunks: AsyncIterator<Buffer> = content[Symbol.asyncIterator]();
  let start = Buffer.alloc(0);
  while (start.length < lineBytes) {
    const { done, value } = await chunks.next();
    if (done) break;
    start = Buffer.concat([start, value]);
  }
  const commit = /^([0-9a-f]{40})\n$/.exec(start.subarray(0, lineBytes).toString('latin1'))?.[1];
  if (commit === undefined) throw new Error('the mirror is damaged');
  async function* pack(): AsyncGenerator<Buffer> {
    yield start.subarray(lineBytes);
    for (;;) {
      const { done, value } = await chunks.next();
      if (done) return;
      yield value;
    }
  }
  return { commit, pack: pack() };
}

/** Adds the objects of a pack to a repository. Git checks the hash of each. */
async function indexPack(pack: AsyncIterable<Buffer>, target: string, options: MirrorOptions): Promise<boolean> {
  const { gitOptions, env, signal } = options;
  const child = spawn('git', [...gitOptions, 'index-pack', '--stdin'], {
    cwd: target,
    env,
    stdio: ['pipe', 'ignore', 'ignore'],
    signal,
  });
  const closed = once(child, 'close') as Promise<[number | null]>;
  closed.catch(() => {});
  try {
    // If git refuses the pack, its exit code says so.
    await pipeline(Readable.from(pack), child.stdin).catch(() => child.stdin.destroy());
    return (await closed)[0] === 0;
  } finally {
    child.kill('SIGKILL');
  }
}

async function writeShallow(target: string, commit: string): Promise<boolean> {
  await writeFile(join(target, '.git/shallow'), `${commit}\n`);
  return true;
}
