/** Starts processes that are as isolated as two containers: each is process 1 of its own namespaces and has its own network. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';

const isolation = ['--pid', '--fork', '--mount-proc', '--net', '--kill-child'];
const prefix = process.getuid?.() === 0 ? isolation : ['--map-root-user', ...isolation];

/** Null if processes can be isolated; otherwise the reason, for the name of a skipped test. */
export const namespaceProblem: string | null = (() => {
  try {
    execFileSync('unshare', [...prefix, 'true'], { stdio: 'pipe' });
    return null;
  } catch {
    return 'no process namespace can be made here';
  }
})();

export interface IsolatedProcess {
  readonly child: ChildProcess;
  /** The first line that the process wrote. */
  readonly line: string;
  end(): Promise<void>;
}

/** Runs an ES module as process 1 of its own namespaces; resolves when it has written a line. */
export async function startIsolated(script: string): Promise<IsolatedProcess> {
  const child = spawn('unshare', [...prefix, process.execPath, '--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  let text = '';
  for await (const piece of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    text += piece;
    if (text.includes('\n')) break;
  }
  return {
    child,
    line: text.split('\n')[0] ?? '',
    async end() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
