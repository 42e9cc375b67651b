import { createHash } from 'node:crypto';
import { readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type FakeWorkerService, fakeAssignment, startFakeWorkerService } from '../../../test/fakes/worker-service.ts';
import { releaseAgents } from '../test/release.ts';
import { bubblewrapFeatures, running, spawnTestWorker, temporaryDataDir, until } from '../test/worker.ts';
import { findWorkerCgroups } from './sandboxes/bubblewrap/ground.ts';
import { listGroups } from './sandboxes/cgroups/hierarchy.ts';

const works = (await bubblewrapFeatures()) !== undefined;

describe.skipIf(!works)('a worker', () => {
  let service: FakeWorkerService;
  let dataDir: string;
  beforeEach(async () => {
    service = await startFakeWorkerService();
    dataDir = await temporaryDataDir();
  });
  afterEach(async () => {
    await service.close();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  });

  test('that gets SIGUSR2 rejects new executions and ends when its running executions have ended', async () => {
    await using worker = await spawnTestWorker(service, dataDir);
    service.send(fakeAssignment('long', ['--fixture', 'sh', 'while ! [ -e /workspace/go ]; do sleep 0.05; done']));
    await service.waitFor('sandbox_ready');
    worker.process.kill('SIGUSR2');
    await service.waitFor('worker_hello', (data) => data.draining && data.executions.length === 1);
    service.send(fakeAssignment('late'));
    await service.waitFor('task_rejected', (data) => data.execution_id === 'late');
    await releaseAgents(path.join(dataDir, 'worker/state'));
    await service.waitFor('task_completed', (data) => data.execution_id === 'long');
    expect(await worker.exited).toBe(0);
  });

  test('with RUNYARD_ADOPT_SECONDS=0 kills agents that ignore SIGTERM when the worker gets a second SIGTERM', async () => {
    await using worker = await spawnTestWorker(service, dataDir, { RUNYARD_ADOPT_SECONDS: '0' });
    service.send(fakeAssignment('stubborn', ['--fixture', 'stubborn']));
    await service.waitFor('sandbox_ready');
    worker.process.kill('SIGTERM');
    await service.waitFor('worker_hello', (data) => data.draining);
    worker.process.kill('SIGTERM');
    expect(await service.waitFor('task_failed')).toMatchObject({ failure_reason: 'worker_stopped' });
    expect(await worker.exited).toBe(0);
  });

  test('that gets SIGINT lets an agent that handles SIGTERM end by itself', async () => {
    await using worker = await spawnTestWorker(service, dataDir);
    service.send(
      fakeAssignment('polite', ['--fixture', 'sh', 'trap "exit 0" TERM; : >/workspace/up; sleep 60 & wait']),
    );
    await service.waitFor('sandbox_ready');
    const sandboxes = path.join(dataDir, 'worker/state/s');
    await until(async () => {
      // A sandbox that is still being made may have no workspace folder yet.
      const filesOf = (id: string) => readdir(path.join(sandboxes, id, 'workspace')).catch(() => []);
      const up = await Promise.all((await readdir(sandboxes)).map(filesOf));
      return up.flat().includes('up');
    });
    worker.process.kill('SIGINT');
    expect(await worker.exited).toBe(0);
    const { exit_code } = await service.waitFor('task_failed');
    expect(exit_code, 'by SIGTERM, not by SIGKILL').toBe(128 + 15);
  });

  test('with RUNYARD_ADOPT_SECONDS=0 that is killed leaves no sandbox processes, and the next worker removes its folders and cgroups', async () => {
    const first = await spawnTestWorker(service, dataDir, { RUNYARD_ADOPT_SECONDS: '0' });
    const mark = `4712.${process.pid}`;
    service.send(fakeAssignment('orphan', ['--fixture', 'sh', `setsid sleep ${mark} & sleep ${mark}`]));
    await until(async () => (await running(mark)) >= 2);
    const { instance_id } = await service.waitFor('worker_hello');
    first.process.kill('SIGKILL');
    await until(async () => (await running(mark)) === 0);
    const sandboxes = path.join(dataDir, 'worker/state/s');
    const left = await readdir(sandboxes);
    expect(left.length).toBeGreaterThan(0);

    await using second = await spawnTestWorker(service, dataDir);
    const hello = await service.waitFor('worker_hello', (data) => data.instance_id !== instance_id);
    expect(hello).toMatchObject({ token: `token of ${instance_id}`, executions: [] });
    expect((await readdir(sandboxes)).filter((folder) => left.includes(folder))).toEqual([]);
    const images = await readdir(path.join(dataDir, 'worker/state/disks')).catch(() => []);
    expect(images.filter((image) => left.includes(path.basename(image, '.img')))).toEqual([]);
    const mounts = await readFile('/proc/self/mountinfo', 'utf8');
    expect(left.filter((folder) => mounts.includes(`${sandboxes}/${folder} `))).toEqual([]);
    const owner = createHash('sha256').update(path.join(dataDir, 'worker')).digest('hex').slice(0, 12);
    const cgroups = await findWorkerCgroups(owner);
    if (cgroups.ok) expect((await listGroups(cgroups.hierarchy)).filter((name) => left.includes(name))).toEqual([]);
    second.process.kill('SIGTERM');
    expect(await second.exited).toBe(0);
  });

  test('that starts on the data folder of a running worker ends with exit code 3, and the running worker continues', async () => {
    await using worker = await spawnTestWorker(service, dataDir);
    await expect(spawnTestWorker(service, dataDir)).rejects.toThrow('exit code 3');
    expect(worker.process.exitCode).toBeNull();
  });

  test('ends with exit code 2 if the service has never accepted its key', async () => {
    await expect(spawnTestWorker(service, dataDir, { RUNYARD_API_KEY: 'wrong-key' })).rejects.toThrow('exit code 2');
  });
});
