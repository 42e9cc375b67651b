import { rm } from 'node:fs/promises';
import path from 'node:path';
import { parseSettings } from '@runyard/contract/settings/settings';
import { pino } from 'pino';
import { describe, expect, test, vi } from 'vitest';
import { startFakeWorkerService } from '../../../test/fakes/worker-service.ts';
import { makeSmallDisk, smallDiskProblem } from '../../../test/support/small-disk.ts';
import { bubblewrapFeatures, fixtureAgent, workerEnvironment } from '../test/worker.ts';
import { isFullDisk, startWhenThereIsRoom } from './full-disk.ts';
import { startWorker } from './worker.ts';

test('isFullDisk recognizes a full disk in the cause of an error and in the output of a program', () => {
  const full = Object.assign(new Error('write'), { code: 'ENOSPC' });
  expect(isFullDisk(new Error('the agent was not bundled', { cause: full }))).toBe(true);
  expect(isFullDisk(new Error('mkfs: No space left on device'))).toBe(true);
  expect(isFullDisk(new Error('permission denied'))).toBe(false);
});

test('an aborted signal ends the wait of a worker for disk space', async () => {
  const stopping = new AbortController();
  const log = { warn: vi.fn(() => stopping.abort()), info: vi.fn() };
  const start = () => Promise.reject(Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' }));
  await expect(startWhenThereIsRoom(start, { log, signal: stopping.signal })).rejects.toThrow();
  expect(log.warn).toHaveBeenCalledOnce();
});

const problem =
  smallDiskProblem ?? ((await bubblewrapFeatures()) === undefined ? 'bubblewrap does not work here' : null);

describe.skipIf(problem)(problem ? `on a full disk (skipped: ${problem})` : 'on a full disk', () => {
  test('a worker logs a warning and waits, and starts when the disk has space again', async () => {
    const disk = await makeSmallDisk(300);
    const service = await startFakeWorkerService();
    try {
      disk.fill();
      const parsed = parseSettings(workerEnvironment(service, path.join(disk.folder, 'data'), {}));
      if (!parsed.ok) throw new Error(parsed.problems.join('; '));
      const log = { info: vi.fn(), warn: vi.fn() };
      const starting = startWhenThereIsRoom(
        () => startWorker(parsed.settings, { log: pino({ level: 'silent' }), agentEntry: fixtureAgent }),
        { log, signal: new AbortController().signal, waitMs: 50 },
      );
      await vi.waitFor(() => expect(log.warn.mock.calls.length).toBeGreaterThan(1), { timeout: 60_000 });
      expect(log.warn.mock.calls[0]?.[1]).toContain('a disk is full');
      disk.free();
      const worker = await starting;
      await service.waitFor('worker_hello');
      await worker.stop();
      await rm(path.join(disk.folder, 'data'), { recursive: true, force: true });
    } finally {
      await service.close();
      await disk.remove();
    }
  }, 120_000);
});
