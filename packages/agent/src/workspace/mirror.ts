import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { runCommand } from '../commands/run-command.ts';
import type { KeptObject, WorkerCache } from './worker-cache.ts';

/*
 * A mirror is a copy of one commit of a repository, with its files, that the worker keeps for later clones. It consists of the line
 * `COMMIT\n` and a pack of git. Git reads a mirror only in the sandbox and checks the hash of each object, so a damaged or forged
 * mirror cannot replace files of the code host.
 */

export interface MirrorOptions {
  readonly cache: WorkerCache;
  /** Name of the mirror in the cache. */
  readonly name: string;
  /** Options of git, which are placed before each subcommand. */
  readonly gitOptions: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/** The ref of the mirror's commit. It exists only while git fetches newer commits from the code host. */
const mirrorRef = 'refs/runyard/mirror';
const lineBytes = 41;

/** `unusable`: the reason why the mirror was not used. The folder may still contain files. */
export type MirrorOutcome =
  | { readonly kind: 'cloned'; readonly commit: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'unusable'; readonly reason: string };

/**
 * Creates the folder `target` from the mirror, and fetches newer commits from the code host. The result is the same as a shallow clone
 * of the branch.
 */
export async function cloneFromMirror(
  target: string,
  origin: { readonly url: string; readonly branch: string },
  options: MirrorOptions,
): Promise<MirrorOutcome> {
  const { env, signal, gitOptions } = options;
  const git = async (cwd: string, ...args: string[]): Promise<void> => {
    const { exitCode, output } = await runCommand({ argv: ['git', ...gitOptions, ...args], cwd, env, signal });
    if (exitCode !== 0) throw new Error(`git ${args[0]} exited with code ${exitCode}. ${output.trim()}`);
  };
  let cached: KeptObject | undefined;
  try {
    cached = await options.cache.get(options.name, signal);
    if (cached === undefined) return { kind: 'none' };
    const { commit, pack } = await readMirror(cached.content);
    const { url, branch } = origin;
    await git('/', 'init', '--quiet', `--initial-branch=${branch}`, '--', target);
    await indexPack(pack, target, options);
    await writeFile(join(target, '.git/shallow'), `${commit}\n`);
    await git(target, 'update-ref', mirrorRef, commit);
    await git(target, 'remote', 'add', '--no-tags', '-t', branch, 'origin', url);
    await git(target, 'fetch', '--quiet', '--depth', '1', 'origin');
    await git(target, 'update-ref', '-d', mirrorRef);
    await git(target, 'symbolic-ref', 'refs/remotes/origin/HEAD', `refs/remotes/origin/${branch}`);
    await git(target, 'checkout', '--quiet', '-b', branch, '--track', `origin/${branch}`);
    return { kind: 'cloned', commit };
  } catch (error) {
    signal.throwIfAborted();
    return { kind: 'unusable', reason: error instanceof Error ? error.message : String(error) };
  } finally {
    cached?.content.destroy();
  }
}

/** Stores the checked out commit of a clone as the mirror of its repository. */
export async function keepMirror(clone: string, commit: string, options: MirrorOptions): Promise<void> {
  await options.cache.put(options.name, Readable.from(mirrorOf(clone, commit, options)), options.signal);
}

async function* mirrorOf(clone: string, commit: string, options: MirrorOptions): AsyncGenerator<Buffer> {
  const { gitOptions, env, signal } = options;
  // A clone from the code host has all objects of its commit in one pack. Packing a large repository again would take minutes.
  const folder = join(clone, '.git/objects/pack');
  const [pack, ...others] = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith('.pack'));
  if (pack !== undefined && others.length === 0) {
    yield Buffer.from(`${commit}\n`);
    yield* createReadStream(join(folder, pack), { signal });
    return;
  }
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

/** Splits the mirror into the commit in the first line and the pack after it. Throws if the first line is not a commit. */
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

/** Adds the objects of a pack to a repository. Git checks the hash of each object. Throws if git refuses the pack. */
async function indexPack(pack: AsyncIterable<Buffer>, target: string, options: MirrorOptions): Promise<void> {
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
    // Ignore a broken pipe, because the exit code of git shows whether git refused the pack.
    await pipeline(Readable.from(pack), child.stdin).catch(() => child.stdin.destroy());
    const [code] = await closed;
    if (code !== 0) throw new Error(`git index-pack ended with ${code}`);
  } finally {
    child.kill('SIGKILL');
  }
}
