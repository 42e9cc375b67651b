import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

export interface RunningCommand {
  readonly child: ChildProcess;
  /** Returns all output that the command has written so far. */
  output(): string;
  /** Resolves when the output contains the text. Rejects, with the output in the message, if this takes too long. */
  sees(text: string | RegExp, timeoutMs?: number): Promise<void>;
  readonly exited: Promise<number>;
}

const running = new Set<ChildProcess>();

/** Kills commands that a failed test left running, each with all processes of its group. */
export function endCommands(): void {
  for (const child of running) {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    } catch {
      // The command ended meanwhile.
    }
  }
  running.clear();
}

/**
 * Starts a command. It gets the given environment and, from the environment of the test, only the paths of programs and of npm's
 * files.
 */
export function startCommand(
  command: readonly [string, ...string[]],
  options: {
    readonly cwd: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly input?: string;
    readonly keepsInput?: true;
  },
): RunningCommand {
  const [program, ...args] = command;
  const kept = [
    ...['PATH', 'HOME', 'USER', 'TMPDIR', 'LANG', 'NODE_COMPILE_CACHE'],
    ...['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'],
  ].map((name) => [name, process.env[name]]);
  // Pass on the settings of npm (such as registry and cache), because they belong to the machine and not to the repository.
  const npm = Object.entries(process.env).filter(([name]) => /^npm_config_/i.test(name));
  const env = Object.fromEntries([...kept, ...npm].filter(([, value]) => value !== undefined));
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: { ...env, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  running.add(child);
  child.stdin.on('error', () => {});
  if (!options.keepsInput) child.stdin.end(options.input ?? '');
  let text = '';
  let ended = false;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
    });
  }
  const exited = new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      running.delete(child);
      ended = true;
      resolve(code ?? -1);
    });
  });
  return {
    child,
    output: () => text,
    exited,
    async sees(wanted, timeoutMs = 120_000) {
      const deadline = performance.now() + timeoutMs;
      for (;;) {
        const over = ended || performance.now() > deadline;
        if (typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text)) return;
        if (over)
          throw new Error(`${wanted} is not in the output${ended ? ', and the command has ended' : ''}:\n${text}`);
        await sleep(25);
      }
    },
  };
}

/** Runs a command, and resolves when it has ended. */
export async function runCommand(
  ...args: Parameters<typeof startCommand>
): Promise<{ readonly code: number; readonly output: string }> {
  const running = startCommand(...args);
  const code = await running.exited;
  return { code, output: running.output() };
}
