import { spawnSync } from 'node:child_process';
import { accessSync, constants, statfsSync, statSync } from 'node:fs';
import path from 'node:path';
import { formatBytes } from '@runyard/contract/wire/byte-size';
import { leastFreeOf } from '@runyard/worker/health';
import { apiKey, type Context, originOfFolder } from '../context/context.ts';
import { readClaim } from '../data-folder/claim.ts';
import { root } from '../data-folder/installation.ts';
import { findOnPath } from '../machine/sandbox-tool.ts';
import { checkPort, portProblem, reachableOrigin } from '../supervise/address.ts';
import { noAnswer, readReadiness } from '../supervise/answers.ts';
import type { Finding } from './finding.ts';

/** Checks that Node is new enough. Also reports whether this is the Node that package-lock.json pins. */
export function checkNode(): Finding {
  const pinned = process.execPath.startsWith(path.join(root, 'node_modules') + path.sep);
  const major = Number(process.versions.node.split('.')[0]);
  if (major < 24) {
    return {
      name: 'Node',
      level: 'bad',
      detail: `${process.version} is too old`,
      fix: 'start bin/runyard, which uses the pinned Node 24',
    };
  }
  return {
    name: 'Node',
    level: 'good',
    detail: `${process.version} (${pinned ? 'pinned in package-lock.json' : `of this system: ${process.execPath}`})`,
  };
}

export function checkGit(context: Context): Finding {
  const file = findOnPath('git', context.env.PATH);
  if (!file) {
    return {
      name: 'git',
      level: 'note',
      detail: 'not found: runs whose environment names repositories fail',
      fix: 'install git (Debian: apt-get install git)',
    };
  }
  const version = spawnSync(file, ['--version'], { encoding: 'utf8', env: { PATH: context.env.PATH } }).stdout?.trim();
  return { name: 'git', level: 'good', detail: version?.replace(/^git version /, '') || file };
}

/** Checks that the data folder is writable and closed to other users. */
export function checkDataFolder(context: Context): Finding {
  const folder = context.folder.path;
  const stat = statSync(folder, { throwIfNoEntry: false });
  const name = 'data folder';
  if (!stat) {
    const parent = existingParent(folder);
    return isWritable(parent)
      ? { name, level: 'good', detail: `${folder} (created at the first start)` }
      : {
          name,
          level: 'bad',
          detail: `${folder} cannot be created: ${parent} is not writable`,
          fix: 'set RUNYARD_DATA_DIR to a folder that you may write',
        };
  }
  if (!stat.isDirectory())
    return { name, level: 'bad', detail: `${folder} is not a folder`, fix: 'set RUNYARD_DATA_DIR to a folder' };
  if (!isWritable(folder))
    return {
      name,
      level: 'bad',
      detail: `${folder} is not writable`,
      fix: `chown it to you, or set RUNYARD_DATA_DIR to another folder`,
    };
  const mode = (stat.mode & 0o777).toString(8);
  if ((stat.mode & 0o007) !== 0) {
    return {
      name,
      level: 'note',
      detail: `${folder} has mode ${mode}: other users of this machine can read it`,
      fix: `chmod 700 ${folder}`,
    };
  }
  const key = apiKey(context) ? '' : '; its key is created at the first start';
  return { name, level: 'good', detail: `${folder} (writable, mode ${mode}${key})` };
}

function existingParent(folder: string): string {
  const parent = path.dirname(folder);
  return parent === folder || statSync(parent, { throwIfNoEntry: false }) ? parent : existingParent(parent);
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Checks that the port is free, or that the service of the data folder listens on it. `foreign` is the origin of a service that listens there
 * and does not belong to the data folder.
 */
export async function checkListening(context: Context, foreign: string | null): Promise<Finding> {
  const { RUNYARD_HOST: host, RUNYARD_PORT: port } = context.settings;
  const name = 'port';
  if (foreign !== null)
    return {
      name,
      level: 'bad',
      detail: `Runyard runs at ${foreign}, but with settings that this command does not have: its database and blobs are not checked`,
      fix: `repeat the command with those settings: --env-file FILE, docker exec, kubectl exec, or as root in the folder of its unit; bin/runyard doctor --url ${foreign} checks it from outside`,
    };
  const claim = readClaim(context.folder.supervisorFile);
  const origin = originOfFolder(context.folder);
  const { answered, ready, problem } = origin === null ? noAnswer : await readReadiness(origin, 3000);
  if (answered && !ready)
    return {
      name,
      level: 'bad',
      detail: `Runyard at ${origin} is not ready: ${problem}`,
      fix: `see ${path.join(context.folder.logs, 'service.log')}`,
    };
  if (answered && problem !== null) return { name, level: 'note', detail: `Runyard runs at ${origin}; ${problem}` };
  if (answered || claim?.origin)
    return {
      name,
      level: 'good',
      detail: `Runyard runs at ${origin ?? claim?.origin}${claim === null ? '' : ` (process ${claim.pid})`}`,
    };
  const found = await checkPort(host, port);
  if (found.ok)
    return { name, level: 'good', detail: port === 0 ? `any free one on ${host}` : `${port} on ${host} is free` };
  return { name, level: 'bad', detail: portProblem(host, port, found.code) };
}

/** Returns the origin of a service that listens on the port of the settings, but does not belong to the data folder. */
export async function findForeignService({ folder, settings }: Context): Promise<string | null> {
  if (originOfFolder(folder) !== null || settings.RUNYARD_BASE_URL !== undefined || settings.RUNYARD_PORT === 0)
    return null;
  const origin = reachableOrigin(settings.RUNYARD_HOST, settings.RUNYARD_PORT);
  return (await readReadiness(origin, 3000)).answered ? origin : null;
}

/** Reports the free space of the disk with the data folder. `forWorker`: new sandboxes need some of it. */
export function checkDisk({ folder }: Pick<Context, 'folder'>, forWorker: boolean): Finding {
  const name = 'disk';
  const { bavail, blocks, bsize } = statfsSync(existingParent(path.join(folder.path, '.')));
  const [free, total] = [bavail * bsize, blocks * bsize];
  const detail = `${formatBytes(free)} of ${formatBytes(total)} are free`;
  if (free >= leastFreeOf(total)) return { name, level: 'good', detail };
  return forWorker
    ? { name, level: 'bad', detail: `${detail}: a worker takes no runs here`, fix: 'free some space' }
    : { name, level: 'note', detail, fix: 'free some space before the service can store nothing' };
}
