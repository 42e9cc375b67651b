import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { access, chmod, constants, mkdir, readdir, readFile, rename, stat } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { makeFolder } from '../../state/make-folder.ts';
import { runInShell } from '../../state/mount-shell.ts';
import { removeTree } from '../../state/remove-tree.ts';
import { systemFolders } from '../../state/sandbox-places.ts';
import { usedInFolders } from '../disk/measure.ts';
import { type ImageStep, SandboxError } from '../sandbox.ts';
import { insideUid } from './filesystem.ts';
import { takeIdentity } from './identities.ts';
import { systemPackages, systemScript } from './system-script.ts';

const run = promisify(execFile);
const longestMs = 900_000;
const environment = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8' };

/** Files with the addresses of Debian's packages on a Debian machine. */
const sourceFiles = ['/etc/apt/sources.list.d/debian.sources', '/etc/apt/sources.list'];
/** The release of a tree on a machine that is not Debian. */
const usualRelease = 'stable';
/** Certificates of authorities that people have added to the machine, such as the authority of a proxy that inspects TLS. */
const machineAuthorities = '/usr/local/share/ca-certificates';

const install = 'install the packages `mmdebstrap` and `debian-archive-keyring` (Debian, Ubuntu)';

/** Returns why this machine cannot make a Debian for sandboxes, and what to do; undefined if it can. */
export async function whyNoSystem(): Promise<string | undefined> {
  const found = await Promise.all(environment.PATH.split(':').map((folder) => exists(path.join(folder, 'mmdebstrap'))));
  return found.includes(true) ? undefined : `mmdebstrap is missing: ${install}`;
}

const failure = (message: string, cause?: Error): SandboxError =>
  new SandboxError(
    'prepare',
    'system_not_made',
    `the environment has its own Debian (system), and this worker cannot make one: ${message}`,
    { cause },
  );

export interface TreeRequest {
  readonly stateRoot: string;
  /** Path of bwrap. */
  readonly program: string;
  /** Returns the current Unix time in milliseconds. */
  readonly now: () => number;
  /** Called when the tree is being made. */
  readonly report: (step: ImageStep) => void;
}

/** The trees that are being made, by the folder of the worker. */
const making = new Map<string, Promise<string>>();

/**
 * Returns the folder with the files of a new Debian, from which each sandbox with `system` gets a copy. Makes it once a month, with the
 * newest packages. Unpacks the packages without running their programs. Then the packages install themselves in a sandbox, as a user
 * without rights, so that the same method works for workers that are not root. Throws a `SandboxError`.
 */
export async function systemTree(request: TreeRequest): Promise<string> {
  const { stateRoot } = request;
  const made = making.get(stateRoot) ?? findOrMake(request).finally(() => making.delete(stateRoot));
  making.set(stateRoot, made);
  return await made;
}

async function findOrMake({ stateRoot, program, now, report }: TreeRequest): Promise<string> {
  const release = await releaseOfMachine();
  const sources = await firstReadable(sourceFiles);
  const month = new Date(now()).toISOString().slice(0, 7);
  const script = systemScript(insideUid);
  const known = JSON.stringify([
    release ?? usualRelease,
    sources?.text,
    systemPackages,
    script,
    month,
    await authorities(),
  ]);
  const parent = path.join(stateRoot, 'system');
  await makeFolder(parent, folderMode());
  const tree = path.join(parent, `debian-${createHash('sha256').update(known).digest('hex').slice(0, 16)}`);
  if (await exists(tree)) return tree;
  const image = `debian:${release ?? usualRelease}, which the worker makes once a month`;
  const began = performance.now();
  report({ step: 'started', image });
  const place = path.join(parent, `making-${randomBytes(4).toString('hex')}`);
  try {
    for (const name of await readdir(parent)) if (name.startsWith('making-')) await removeTree(path.join(parent, name));
    // Only the worker may enter the folder while it contains programs with setuid rights. A change of owner removes these rights.
    await mkdir(place, { mode: 0o700 });
    await unpack(place, release ?? usualRelease, release === undefined ? undefined : sources?.file);
    await configure(place, program);
    await removeOldTrees(parent, now());
    await rename(path.join(place, 'tree'), tree);
    const bytes = await usedInFolders([tree], async () => [], AbortSignal.timeout(longestMs));
    report({ step: 'finished', image, durationMs: Math.round(performance.now() - began), bytes });
    return tree;
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string };
    const said = stderr.trim().split('\n').slice(-3).join(' ') || message;
    const reason =
      (await whyNoSystem()) ?? `${said}; check that the worker can reach the package mirror of its machine`;
    report({ step: 'finished', image, durationMs: Math.round(performance.now() - began), error: reason });
    throw failure(reason, error as Error);
  } finally {
    await removeTree(place);
  }
}

/** Downloads the packages and unpacks them into `tree`. Runs no program of the packages. */
async function unpack(place: string, release: string, sources: string | undefined): Promise<void> {
  const [archive, tree] = [path.join(place, 'tree.tar'), path.join(place, 'tree')];
  const merged = 'for name in bin sbin lib lib64; do mkdir -p "$1/usr/$name"; ln -s "usr/$name" "$1/$name"; done';
  const packages = ['?essential', '?priority(required)', ...systemPackages].map((name) => `--include=${name}`);
  const options = ['--quiet', '--mode=chrootless', '--variant=extract', '--skip=cleanup/apt', `--setup-hook=${merged}`];
  const given = sources === undefined ? [] : [sources];
  const proxies = Object.fromEntries(Object.entries(process.env).filter(([name]) => /^(https?|no)_proxy$/i.test(name)));
  await run('mmdebstrap', [...options, ...packages, release, archive, ...given], {
    env: { ...proxies, ...environment, HOME: place, TMPDIR: place },
    timeout: longestMs,
    maxBuffer: 1 << 24,
  });
  await mkdir(path.join(tree, 'usr/local/share'), { recursive: true, mode: 0o755 });
  await run('tar', ['--extract', '--no-same-owner', '--exclude=./dev/*', `--directory=${tree}`, `--file=${archive}`], {
    env: environment,
    timeout: longestMs,
  });
  // ca-certificates adds these to its list when it is configured.
  if (await exists(machineAuthorities))
    await shell([
      'cp',
      '-rL',
      '--no-preserve=ownership',
      '--',
      machineAuthorities,
      path.join(tree, 'usr/local/share/'),
    ]);
}

/** Returns the names and contents of the machine's own authorities. */
async function authorities(): Promise<readonly (readonly [string, string])[]> {
  const found = await readdir(machineAuthorities, { withFileTypes: true, recursive: true }).catch(() => []);
  const files = found.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
  const read = async (file: string) => [file, await readFile(file, 'utf8').catch(() => '')] as const;
  return await Promise.all(files.sort().map(read));
}

/** Lets the packages install themselves, in a sandbox without network whose root is the tree. */
async function configure(place: string, program: string): Promise<void> {
  const tree = path.join(place, 'tree');
  const identity = process.getuid?.() === 0 ? await takeIdentity() : undefined;
  try {
    if (identity !== undefined) {
      await shell(['chown', '-hR', `${identity.uid}:${identity.uid}`, '--', tree]);
      await chmod(place, 0o711);
    }
    const user = identity === undefined ? {} : { uid: identity.uid, gid: identity.uid };
    await run(
      program,
      [
        ...[
          '--unshare-all',
          '--unshare-user',
          '--disable-userns',
          '--die-with-parent',
          '--new-session',
          '--cap-drop',
          'ALL',
        ],
        ...[
          '--uid',
          String(insideUid),
          '--gid',
          String(insideUid),
          '--bind',
          tree,
          '/',
          '--proc',
          '/proc',
          '--dev',
          '/dev',
        ],
        ...[
          '--tmpfs',
          '/run',
          '--tmpfs',
          '/tmp',
          '--chdir',
          '/',
          'fakeroot-sysv',
          '--',
          'sh',
          '-c',
          systemScript(insideUid),
        ],
      ],
      {
        ...user,
        env: {
          ...environment,
          HOME: '/root',
          DEBIAN_FRONTEND: 'noninteractive',
          DEBCONF_NONINTERACTIVE_SEEN: 'true',
          FAKEROOTDONTTRYCHOWN: '1',
        },
        timeout: longestMs,
        killSignal: 'SIGKILL',
        maxBuffer: 1 << 24,
      },
    );
    // A later sandbox may get the same user.
    if (identity !== undefined) await shell(['chown', '-hR', '0:0', '--', tree]);
    await chmod(tree, 0o755);
  } finally {
    identity?.release();
  }
}

/**
 * Returns the mode of folders with systems. If the worker is root, the users of sandboxes must be able to enter the folders. If the worker
 * is not root, no other user may enter them, because programs with setuid rights in a system would run as the worker's user.
 */
const folderMode = (): number => (process.getuid?.() === 0 ? 0o711 : 0o700);

/** Copies the files of a new Debian into a folder of a sandbox. `uid`: the user of the sandbox, if the worker is root. */
export async function copySystem(tree: string, to: string, uid: number | undefined): Promise<void> {
  await mkdir(to, { mode: folderMode() });
  const folders = systemFolders.map((name) => path.join(tree, name));
  await shell(['cp', '-a', '--reflink=auto', '--', ...folders, to]);
  if (uid !== undefined) await shell(['chown', '-hR', `${uid}:${uid}`, '--', to]);
  // The sandbox must not replace a folder that is mounted.
  if (uid !== undefined) await shell(['chown', '0:0', '--', to]);
}

async function shell(words: readonly string[]): Promise<void> {
  const result = await runInShell(words, longestMs);
  if (result.type !== 'done')
    throw new Error(`${words[0]} failed: ${result.type === 'lost' ? 'its shell was killed' : result.output}`);
}

/** Returns the name of the machine's Debian release; undefined if the machine is not Debian. */
async function releaseOfMachine(): Promise<string | undefined> {
  const text = await readFile('/etc/os-release', 'utf8').catch(() => '');
  return /^ID=debian$/m.test(text) ? /^VERSION_CODENAME="?(\w+)"?$/m.exec(text)?.[1] : undefined;
}

async function firstReadable(files: readonly string[]): Promise<{ file: string; text: string } | undefined> {
  for (const file of files) {
    const text = await readFile(file, 'utf8').catch(() => '');
    if (text.trim() !== '') return { file, text };
  }
  return undefined;
}

const exists = (file: string): Promise<boolean> =>
  access(file, constants.F_OK).then(
    () => true,
    () => false,
  );

/**
 * Removes the trees of earlier months. Keeps the newest one, and those that were replaced a short time ago, because sandboxes may still be
 * copying them. `now`: Unix time in milliseconds.
 */
export async function removeOldTrees(parent: string, now: number): Promise<void> {
  const names = (await readdir(parent)).filter((name) => name.startsWith('debian-'));
  const trees = names.map((name) => path.join(parent, name));
  const times = await Promise.all(trees.map(async (tree) => (await stat(tree)).ctimeMs));
  const isReplaced = (time: number): boolean => times.some((other) => other > time && other < now - 2 * longestMs);
  for (const [index, tree] of trees.entries()) if (isReplaced(times[index] ?? now)) await removeTree(tree);
}
