import { chmod } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { type IsolatedProcess, namespaceProblem, startIsolated } from '../../../../test/support/namespaces.ts';
import { lockDataFolder } from './data-folder-lock.ts';

let dataDir: string;
beforeEach(async () => {
  dataDir = newFolder();
  await chmod(dataDir, 0o711);
});

describe.skipIf(namespaceProblem)(
  namespaceProblem ? `between containers (skipped: ${namespaceProblem})` : 'between containers',
  () => {
    const holders: IsolatedProcess[] = [];
    afterEach(async () => {
      for (const holder of holders.splice(0)) await holder.end();
    });

    /**
     * Starts a process in a separate pid namespace, where its pid is 1. The process locks the folder and continues to run. Returns its
     * pid, and `heldBy` if the lock has another holder.
     */
    async function lockFromContainer(): Promise<{ pid: number; heldBy?: string }> {
      const module = path.join(import.meta.dirname, 'data-folder-lock.ts');
      const holder = await startIsolated(`
        import { lockDataFolder } from ${JSON.stringify(module)};
        const lock = await lockDataFolder(${JSON.stringify(dataDir)});
        console.log(JSON.stringify({ pid: process.pid, heldBy: lock.heldBy }));
        setInterval(() => {}, 1000);`);
      holders.push(holder);
      return JSON.parse(holder.line);
    }

    test('a process keeps the lock of the folder until it ends, even if a process with the same pid in another container tries to take the lock', async () => {
      expect(await lockFromContainer()).toEqual({ pid: 1 });
      expect(await lockFromContainer()).toEqual({ pid: 1, heldBy: 'a worker in another container' });
      expect(await lockDataFolder(dataDir)).toEqual({ heldBy: 'a worker in another container' });
      await holders[0]?.end();
      const heldBy = async () => {
        const lock = await lockDataFolder(dataDir);
        if ('heldBy' in lock) return lock.heldBy;
        await lock.release();
        return undefined;
      };
      await expect.poll(heldBy).toBeUndefined();
    });
  },
);
