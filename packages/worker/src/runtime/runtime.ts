import { randomBytes } from 'node:crypto';
import {
  access,
  chmod,
  chown,
  constants,
  copyFile,
  link,
  mkdir,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import { agentNode, initShell, startFile } from './agent-program.ts';
import { bundleHash, bundleProgram, readStamp, writeBundle, writeStamp } from './bundle.ts';
import { containerInit, placeContainerInit } from './container-init.ts';
import { placePortableNode, placePortableShell } from './portable-node.ts';

/** Options for making the runtime, which is the folder that sandboxes see as /opt/runyard. */
export interface RuntimeRequest {
  readonly stateRoot: string;
  /** Path of the agent's `main.ts`. */
  readonly entry: string;
  /**
   * Runs the agent once in a sandbox that may write to `agent/cache` of the given folder, so that the agent stores its compiled code
   * there. If this function rejects, the runtime has no compiled code.
   */
  readonly rehearse?: (folder: string) => Promise<void>;
  /**
   * Path at which containers see the runtime. If this is set, the runtime contains copies of the libraries for Node, so that Node uses no
   * library of an image. If it is absent, Node uses the libraries of this machine.
   */
  readonly portableIn?: string;
  /**
   * True if other workers use runtimes of the folder without a lock. Then only runtimes that were not used in the last 30 days are
   * removed.
   */
  readonly shared?: boolean;
  /**
   * Runtimes of sandboxes that an earlier worker left. They are not removed, because the agents in these sandboxes may load parts of the
   * program later.
   */
  readonly inUse?: readonly string[];
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

/**
 * A shared runtime is removed when it was not used for this time. The time is long, because an agent of another worker may run for days
 * and load parts of the program late.
 */
const unusedMs = 30 * 24 * 3_600_000;

/** The agent's commands, which shells and scripts inside the sandbox can call. */
export const agentCommands = ['report-artifact', 'child-run', 'pull-request', 'github-answer'] as const;

/** Returns the text of a script that starts a command of the agent. The script finds the runtime relative to the script's own path. */
const commandScript = (name: string): string =>
  `#!/bin/sh\nexec "\${0%/*}/../node" "\${0%/*}/../agent/${startFile}" ${name} "$@"\n`;

/**
 * Returns the folder of the runtime, with `node`, `agent/node`, `agent/main.cjs`, `agent/cache` and `bin/`. Makes the folder only if there
 * is none yet for this version of the agent and this Node. A new runtime is made in a temporary folder, which is renamed when it is
 * complete. The runtime belongs to the worker's user and is read-only in every sandbox, so a run cannot change files that another run
 * reads. Removes older runtimes that no agent uses. In a folder that is not shared, these are all runtimes that are not in `inUse`, because
 * the caller holds the lock of the data folder.
 */
export async function makeRuntime(request: RuntimeRequest): Promise<string> {
  const began = performance.now();
  const runtimes = path.join(request.stateRoot, 'runtime');
  await mkdir(runtimes, { recursive: true, mode: 0o755 });
  await chmod(runtimes, 0o755);
  const node = process.execPath;
  const salt = `${process.version} ${process.arch} ${(await stat(node)).size} ${request.rehearse !== undefined} ${request.portableIn ?? ''} ${initShell} ${await modifiedAt(shell)} ${containerInit}`;
  const stampFile = path.join(runtimes, 'stamp.json');
  const known = await readStamp(stampFile, request.entry, salt);
  if (known !== undefined && (await isWhole(path.join(runtimes, known)))) {
    await markUsed(path.join(runtimes, known));
    return path.join(runtimes, known);
  }

  const bundle = await bundleProgram(request.entry).catch((error: Error) => {
    throw new Error(`the agent (${request.entry}) cannot be bundled: ${error.message}`, { cause: error });
  });
  const hash = bundleHash(bundle, salt);
  const folder = path.join(runtimes, hash);
  if (!(await isWhole(folder))) {
    const making = path.join(runtimes, `.making-${randomBytes(4).toString('hex')}`);
    await mkdir(making, { mode: 0o755 });
    await writeBundle(bundle, path.join(making, 'agent'));
    if (request.portableIn === undefined) {
      await placeNode(node, path.join(making, 'node'));
      await placeUnreadable(node, path.join(making, agentNode));
      await placeUnreadable(shell, path.join(making, initShell));
    } else {
      await placePortableNode(making, request.portableIn);
      await placePortableShell(shell, path.join(making, initShell), request.portableIn);
      await placeContainerInit(making);
    }
    await mkdir(path.join(making, 'bin'), { mode: 0o755 });
    await symlink('../node', path.join(making, 'bin/node'));
    for (const name of agentCommands)
      await writeFile(path.join(making, 'bin', name), commandScript(name), { mode: 0o755 });
    const cache = path.join(making, 'agent/cache');
    await mkdir(cache, { mode: 0o755 });
    if (request.rehearse !== undefined) {
      await request.rehearse(making).catch((error: Error) => {
        request.log.warn(
          { error: error.message },
          'the agent could not be rehearsed: it starts without compiled code, which takes longer',
        );
      });
    }
    await ownAll(cache);
    await rename(making, folder).catch(async (error: NodeJS.ErrnoException) => {
      await rm(making, { recursive: true, force: true });
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    });
  }
  await writeStamp(stampFile, request.entry, salt, hash, bundle);
  await markUsed(folder);
  await removeOthers(
    runtimes,
    [folder, ...(request.inUse ?? [])].map((kept) => path.basename(kept)),
    request.shared === true ? Date.now() - unusedMs : Number.POSITIVE_INFINITY,
  );
  request.log.info(
    { folder, duration_ms: Math.round(performance.now() - began) },
    'the agent was bundled for the sandboxes',
  );
  return folder;
}

/** The shell of the machine, with which the sandbox's first process runs. */
const shell = '/bin/sh';

/** Returns the time of the last change (Unix milliseconds). */
const modifiedAt = async (file: string): Promise<number> => (await stat(file)).mtimeMs;

async function isWhole(folder: string): Promise<boolean> {
  const executable = ['node', agentNode].map((name) => access(path.join(folder, name), constants.X_OK));
  return Promise.all([access(path.join(folder, 'agent', startFile)), ...executable]).then(
    () => true,
    () => false,
  );
}

/**
 * Makes a hard link to Node, so that agents and the worker share the pages of the file in memory. Makes a copy instead if the folder
 * is on another file system, or if other users cannot read the worker's Node.
 */
async function placeNode(from: string, to: string): Promise<void> {
  const { mode } = await stat(from);
  const readable = (mode & 0o005) === 0o005;
  const linked =
    readable &&
    (await link(from, to).then(
      () => true,
      () => false,
    ));
  if (linked) return;
  await copyFile(from, to, constants.COPYFILE_FICLONE);
  await chmod(to, 0o755);
}

/**
 * Copies a program and sets a mode that allows only execution; `agentProgram` explains why. A hard link is not possible, because the
 * original would get this mode too.
 */
async function placeUnreadable(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE);
  await chmod(to, 0o111);
}

/**
 * Makes the user of this process the owner of the files, because the rehearsal has written some of them as the user of its sandbox.
 * After this, all users can read the files, but only the owner can write them.
 */
async function ownAll(folder: string): Promise<void> {
  const uid = process.getuid?.() ?? 0;
  const gid = process.getgid?.() ?? 0;
  await chown(folder, uid, gid);
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const place = path.join(folder, entry.name);
    if (entry.isDirectory()) await ownAll(place);
    else if (entry.isFile()) {
      await chown(place, uid, gid);
      await chmod(place, 0o644);
    } else await rm(place);
  }
}

/** Sets the modification time of the folder, which shows when the runtime was last used. */
async function markUsed(folder: string): Promise<void> {
  await utimes(folder, new Date(), new Date());
}

/** Removes runtimes that are not in `kept` and were last used before `before` (Unix milliseconds), even if they are incomplete. */
async function removeOthers(runtimes: string, kept: readonly string[], before: number): Promise<void> {
  for (const name of await readdir(runtimes)) {
    if (kept.includes(name) || name === 'stamp.json') continue;
    const found = await stat(path.join(runtimes, name)).catch(() => undefined);
    if (found !== undefined && found.mtimeMs < before)
      await rm(path.join(runtimes, name), { recursive: true, force: true }).catch(() => {});
  }
}
