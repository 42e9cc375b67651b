import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import type { Settings } from '@runyard/contract/settings/settings';
import { findBubblewrap } from '@runyard/worker/find-bubblewrap';
import { Failure } from '../exits/failure.ts';

/** Returns the first executable file of that name on `PATH`, or `null`. */
export function findOnPath(name: string, pathVariable: string | undefined): string | null {
  for (const folder of (pathVariable ?? '').split(path.delimiter)) {
    if (folder === '') continue;
    const file = path.join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // The program is not in this folder.
    }
  }
  return null;
}

/** Returns the command that installs bubblewrap with this machine's package manager. */
export function installCommand(pathVariable: string | undefined): string {
  const managers = [
    ['apt-get', 'sudo apt-get update && sudo apt-get install -y bubblewrap'],
    ['dnf', 'sudo dnf install -y bubblewrap'],
    ['pacman', 'sudo pacman -S --noconfirm bubblewrap'],
    ['zypper', 'sudo zypper install -y bubblewrap'],
    ['apk', 'sudo apk add bubblewrap'],
  ] as const;
  return (
    managers.find(([manager]) => findOnPath(manager, pathVariable))?.[1] ??
    'install the package `bubblewrap` with your package manager'
  );
}

/** End of a message for machines without bubblewrap. */
export const withoutSandbox =
  'To work without it: RUNYARD_SANDBOX=none. Then agents run as plain processes of your user: they can read and change whatever you can, and reach your network. Only for prompts that you trust.';

/**
 * If the worker needs bubblewrap, checks that it is installed. If it is missing and this process is root on a Debian-like system,
 * installs bubblewrap and reports this.
 * @throws Failure with the command that installs bubblewrap, and the way to work without it
 */
export async function ensureSandboxTool(
  settings: Settings,
  env: Readonly<Record<string, string | undefined>>,
  report: (message: string) => void,
): Promise<void> {
  if (settings.RUNYARD_SANDBOX === 'docker' || settings.RUNYARD_SANDBOX === 'none') return;
  if (process.platform !== 'linux') {
    throw new Failure(
      `agents run in sandboxes, which exist on Linux only, and this is ${process.platform}.\n${withoutSandbox}`,
    );
  }
  if (await findBubblewrap()) return;
  const missing = 'bubblewrap (bwrap), the sandbox that agents run in, is not installed';
  if (process.getuid?.() !== 0 || !findOnPath('apt-get', env.PATH)) {
    throw new Failure(`${missing}. Install it:\n  ${installCommand(env.PATH)}\n${withoutSandbox}`);
  }
  report(`${missing}; installing it with apt-get ...`);
  const install = () =>
    spawnSync('apt-get', ['install', '-y', '--no-install-recommends', 'bubblewrap'], aptOptions(env));
  let installed = install();
  if (installed.status !== 0) {
    // Gets the package lists and tries again, because a new machine or container has no package lists yet.
    spawnSync('apt-get', ['update'], aptOptions(env));
    installed = install();
  }
  if (installed.status !== 0) {
    throw new Failure(
      `apt-get could not install bubblewrap:\n${String(installed.stderr).trim().slice(-2000)}\n${withoutSandbox}`,
    );
  }
  report('bubblewrap is installed');
}

function aptOptions(env: Readonly<Record<string, string | undefined>>) {
  return {
    stdio: ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'],
    env: { PATH: env.PATH, HOME: env.HOME, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' },
  };
}
