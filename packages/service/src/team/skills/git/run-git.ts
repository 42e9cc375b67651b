import { spawn } from 'node:child_process';

/**
 * Reasons why a repository could not be read. `refused`: the code host or the stored credential gives no access; `unsuitable`: the
 * repository is too large, empty, or of an unsupported kind; `unavailable`: the code host or this machine cannot read it now.
 */
export type UnreadableKind = 'refused' | 'unsuitable' | 'unavailable';

/** Thrown if a repository cannot be read. The message is a sentence for the caller of the API. */
export class Unreadable extends Error {
  readonly kind: UnreadableKind;
  constructor(kind: UnreadableKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Seconds of processor time, and kilobytes of memory, of one git process. */
const shell = 'ulimit -t 20; ulimit -v 1048576 2> /dev/null; ulimit -c 0; umask 077; exec git "$@"';

/**
 * Settings for git. git gets no other settings, so its defaults apply. git only indexes packs and reads objects here. These commands do not
 * use hooks, filters, submodules, LFS programs or the network; the settings also switch all of these off.
 */
const settings = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.bigFileThreshold', '1m'],
  ['core.quotePath', 'false'],
  ['protocol.allow', 'never'],
  ['submodule.recurse', 'false'],
  ['pack.threads', '1'],
  ['gc.auto', '0'],
] as const;

const environment = (): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH ?? '/usr/bin:/bin',
  HOME: '/nonexistent',
  LC_ALL: 'C',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_NO_LAZY_FETCH: '1',
  GIT_LITERAL_PATHSPECS: '1',
  GIT_CONFIG_COUNT: String(settings.length),
  ...Object.fromEntries(
    settings.flatMap(([name, value], n) => [
      [`GIT_CONFIG_KEY_${n}`, name],
      [`GIT_CONFIG_VALUE_${n}`, value],
    ]),
  ),
});

interface GitOptions {
  /** The bare repository. */
  readonly folder: string;
  readonly input?: Buffer | string;
  /** Maximum number of bytes of standard output. If git writes more, it is killed. */
  readonly maxOutputBytes: number;
  readonly signal: AbortSignal;
}

/** Runs git in a bare repository and returns its output. Throws `Unreadable`. */
export function runGit(
  args: readonly string[],
  { folder, input, maxOutputBytes, signal }: GitOptions,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const child = spawn('/bin/sh', ['-c', shell, 'git', ...args], {
      cwd: folder,
      env: { ...environment(), GIT_DIR: folder },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    child.once('error', (error) => {
      signal.removeEventListener('abort', onAbort);
      reject(new Unreadable('unavailable', `The service cannot start git: ${error.message}.`));
    });
    const parts: Buffer[] = [];
    let size = 0;
    let errorText = '';
    let fault: string | undefined;
    const kill = (why: string) => {
      fault ??= why;
      // Kills the whole group, because git may have started another git.
      if (child.pid !== undefined && child.exitCode === null) killGroup(child.pid);
    };
    const onAbort = () => kill('was not read in time');
    // If no file descriptor is free, git does not start, and the process object has no streams. The error event, handled above, comes
    // later.
    if (child.pid === undefined) return;
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    child.stdout.on('data', (part: Buffer) => {
      size += part.length;
      if (size > maxOutputBytes) kill('has more files than are read');
      else parts.push(part);
    });
    child.stderr.on('data', (part: Buffer) => {
      if (errorText.length < 500) errorText += part.toString('utf8');
    });
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    child.once('close', (code) => {
      signal.removeEventListener('abort', onAbort);
      if (fault !== undefined) reject(new Unreadable('unsuitable', `The repository ${fault}.`));
      else if (code === 0) resolve(Buffer.concat(parts));
      else if (code === 127)
        reject(new Unreadable('unavailable', 'git is not installed where the service runs. Install it there.'));
      else {
        const reason =
          errorText
            .replace(/\p{C}+/gu, ' ')
            .trim()
            .slice(0, 200) || 'it was stopped at its limits';
        reject(new Unreadable('unsuitable', `The repository cannot be read: ${reason}.`));
      }
    });
  });
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // git has exited by itself.
  }
}
