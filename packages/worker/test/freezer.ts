/** Freezes processes, so that no signal can end them for a while. So a test can imitate processes that wait for a broken disk. */
import { access, constants, mkdir, rmdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { findProcesses } from '../src/state/processes.ts';

/** Folder of version 1 of the kernel's freezer. Only in this version, SIGKILL does not end a frozen process. */
const root = '/sys/fs/cgroup/freezer';

/** Returns true if `freeze` works on this machine. */
export async function canFreeze(): Promise<boolean> {
  return access(path.join(root, 'cgroup.procs'), constants.W_OK).then(
    () => true,
    () => false,
  );
}

let number = 0;

/**
 * Freezes the processes whose command line has an entry that begins with `mark`. `thaw` or disposing of the result lets the processes
 * continue; a second call does nothing.
 */
export async function freeze(mark: string): Promise<{ thaw(): Promise<void> } & AsyncDisposable> {
  const group = path.join(root, `runyard-test-${process.pid}-${++number}`);
  await mkdir(group);
  for (const pid of await findProcesses('cmdline', mark))
    await writeFile(path.join(group, 'cgroup.procs'), String(pid));
  await writeFile(path.join(group, 'freezer.state'), 'FROZEN');
  const thaw = (): Promise<void> => writeFile(path.join(group, 'freezer.state'), 'THAWED');
  return {
    thaw,
    async [Symbol.asyncDispose]() {
      await thaw();
      // Tries again, because the group cannot be removed before the last process has left it.
      for (;;) {
        const busy = await rmdir(group).then(
          () => false,
          (error: NodeJS.ErrnoException) => error.code === 'EBUSY',
        );
        if (!busy) return;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
  };
}
