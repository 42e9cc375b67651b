import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import type { Settings } from '@runyard/contract/settings';
import { findBubblewrap } from '@runyard/worker/find-bubblewrap';
import { Failure } from './failure.ts';

/** The first executable file of that name on `PATH`, `null` where there is none. */
export function findOnPath(name: string, pathVariable: string | undefined): string | null {
  for (const folder of (pathVariable ?? '').split(path.delimiter)) {
    if (folder === '') continue;
    const file = path.join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // Not here.
    }
  }
  return null;
}

/** How to install bubblewrap by hand, by the package manager that is there. */
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

/** How to go on where there is no bubblewrap. */
export const withoutSandbox =
  'To go on without it: RUNYARD_SANDBOX=none. Then agents run as plain processes of your user: they can read and change whatever you can, and reach your network. Only for prompts that you trust.';

/**
 * Sees to it that bubblewrap is there where the worker will want it: installs it when root on a Debian-like system, and says so.
 * @throws Failure with the command to install it and how to go on without
 */
export async function ensureSandboxTool(
  settings: Settings,
  env: Readonly<Record<string, string | undefined>>,
  report: (message: string) => void,
): Promise<void> {
  if (settings.RUNYARD_SANDBOX !== 'auto' && settings.RUNYARD_SANDBOX !== 'bubblewrap') return;
  if (process.platform !== 'linux') {
    throw new Failure(
      `agents run in a bubblewrap sandbox, which exists on Linux only; on ${process.platform}, a Docker backend comes later.\n${withoutSandbox}`,
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
    // A fresh machine or container has no package lists yet.
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
