/** Starts a machine with systemd as process 1, in namespaces: a copy of this system, with this checkout in /opt/runyard. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { eventually } from './system.ts';

const root = path.resolve(import.meta.dirname, '../..');

/** Folder of the second version of cgroups; undefined if this machine has none. */
const cgroups = readFileSync('/proc/mounts', 'utf8')
  .split('\n')
  .map((line) => line.split(' '))
  .find(([, , type]) => type === 'cgroup2')?.[1];

/** Null if such a machine can be started; otherwise the reason, for the name of a skipped test. */
export const systemdProblem: string | null =
  process.getuid?.() !== 0
    ? 'only root can start systemd'
    : cgroups === undefined
      ? 'there are no cgroups of version 2'
      : ['/lib/systemd/systemd', '/usr/bin/busctl', '/usr/bin/dbus-daemon', '/usr/bin/nsenter', '/usr/sbin/ip'].find(
            (file) => !existsSync(file),
          ) === undefined
        ? null
        : 'systemd or dbus is not installed';

export interface SystemdMachine {
  /** Runs a script of sh as root on the machine. Returns the output on both streams. */
  run(script: string): { readonly code: number | null; readonly output: string };
  stop(): Promise<void>;
}

export async function startSystemdMachine(): Promise<SystemdMachine> {
  const folder = mkdtempSync(path.join(tmpdir(), 'machine-'));
  const cgroup = path.join(cgroups ?? '', path.basename(folder));
  mkdirSync(cgroup);
  const script = path.join(import.meta.dirname, 'systemd-machine.sh');
  const kinds = ['--cgroup', '--mount', '--pid', '--fork', '--uts', '--ipc', '--net', '--kill-child'];
  // The shell joins the cgroup first, so that the machine sees it as the root of all cgroups.
  const join = 'echo $$ >"$0/cgroup.procs" && exec unshare "$@"';
  const child = spawn('sh', ['-c', join, cgroup, ...kinds, script, folder, root], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exited = new Promise<void>((resolve) => child.on('exit', () => resolve()));
  const first = (): string => readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim();
  const run = (text: string) => {
    const namespaces = ['--mount', '--pid', '--cgroup', '--uts', '--ipc', '--net', '--root'];
    const args = ['--target', first(), ...namespaces, 'sh', '-c', `cd /; exec 2>&1\n${text}`];
    const { status, stdout } = spawnSync('nsenter', args, { encoding: 'utf8', timeout: 120_000 });
    return { code: status, output: stdout };
  };
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
    await eventually('end of all processes of the machine', async () => {
      writeFileSync(path.join(cgroup, 'cgroup.kill'), '1');
      try {
        removeCgroups(cgroup);
        return true;
      } catch {
        return null;
      }
    });
  };
  try {
    await eventually('a machine with systemd', async () =>
      child.exitCode === null && first() !== '' && run('systemctl is-active test.target').code === 0 ? true : null,
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return { run, stop };
}

function removeCgroups(cgroup: string): void {
  const below = execFileSync('find', [cgroup, '-depth', '-type', 'd'], { encoding: 'utf8' }).trim().split('\n');
  for (const each of below) rmdirSync(each);
}
