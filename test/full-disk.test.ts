/** Tests service, worker and runs while the disk of their data folder is full. */
import { mkdirSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { makeSmallDisk, type SmallDisk, smallDiskProblem } from './support/small-disk.ts';
import { eventually, type System, sandboxProblem, startSystem } from './support/system.ts';

const problem = smallDiskProblem ?? sandboxProblem;
const leaseSeconds = 12;

describe.skipIf(problem)(problem ? `with a full disk (skipped: ${problem})` : 'with a full disk', () => {
  let disk: SmallDisk;
  let system: System;

  beforeAll(async () => {
    disk = await makeSmallDisk(700);
    const dataDir = path.join(disk.folder, 'data');
    mkdirSync(dataDir, { mode: 0o711 });
    // With the level debug, the service logs each request and each line of the database's log, so that it also writes many log lines
    // to the full disk.
    system = await startSystem({
      dataDir,
      env: { RUNYARD_LEASE_SECONDS: String(leaseSeconds), RUNYARD_RECONNECT_GRACE_SECONDS: '5', RUNYARD_LOG: 'debug' },
    });
  });
  afterEach(() => disk.free());
  afterAll(async () => {
    await system.stop();
    await disk.remove();
  });

  const ask = async (method: string, route: string, body?: object) => {
    const startedAt = performance.now();
    const response = await fetch(system.baseUrl() + route, {
      method,
      headers: { authorization: `Bearer ${system.key}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      retryAfter: response.headers.get('retry-after'),
      body: JSON.parse(text),
      ms: performance.now() - startedAt,
    };
  };
  /** Creates the file for which the run waits. */
  const letGoOn = async () => {
    const line = (await system.logs()).split('\n').find((text) => text.includes('"sandboxes live here"')) ?? '';
    const sandboxes = path.join(JSON.parse(line).folder, 's');
    // Ignore errors, because a sandbox that the worker is still creating has no workspace.
    for (const id of await readdir(sandboxes))
      await writeFile(path.join(sandboxes, id, 'workspace/go'), '').catch(() => undefined);
  };
  const create = () => ask('POST', '/api/v1/agent/runs', { prompt: '```sh\ntrue\n```' });

  test('the service refuses writes with 503 and a reason, serves reads, keeps sandboxes alive and recovers by itself', async () => {
    const pids = [system.service().pid, system.worker().pid];
    const running = await system.createRun('```sh\nwhile ! [ -e go ]; do sleep 0.2; done; echo went\n```');
    const ended = await system.createRun('```sh\necho done\n```');
    await system.untilEnded(ended);
    const { session_id: session } = await system.until(running, (run) => run.state === 'INPROGRESS');

    disk.fill();
    const filledAt = performance.now();
    const refused = await eventually('a refusal', async () => {
      const answer = await create();
      return answer.status === 503 && answer;
    });
    expect(refused.body).toMatchObject({ error_code: 'resource_unavailable', retryable: true });
    expect(refused.body.detail).toContain('is full');
    expect(Number(refused.retryAfter)).toBeGreaterThan(0);

    // Wait until the service itself has measured that the disk is full. The database may refuse writes earlier.
    await eventually('a degraded service', async () =>
      (await ask('GET', '/readyz')).body.degraded?.includes('is full'),
    );

    // Send reads and writes for twice the duration of a lease. The service logs each request.
    while (performance.now() - filledAt < leaseSeconds * 2000) {
      for (const answer of await Promise.all([create(), create(), create()])) {
        expect(answer).toMatchObject({ status: 503 });
        expect(answer.ms).toBeLessThan(30_000);
      }
      expect(await ask('GET', `/api/v1/agent/runs/${ended}`)).toMatchObject({
        status: 200,
        body: { state: 'SUCCEEDED' },
      });
      expect((await ask('GET', '/api/v1/agent/runs')).body.runs.length).toBeGreaterThanOrEqual(2);
      expect((await ask('GET', '/readyz')).body.degraded).toContain('is full');
      expect(await system.run(running)).toMatchObject({ state: 'INPROGRESS', session_id: session });
      await sleep(400);
    }
    expect([system.service(), system.worker()].map((child) => child.exitCode ?? child.signalCode)).toEqual([
      null,
      null,
    ]);
    expect([system.service().pid, system.worker().pid]).toEqual(pids);

    disk.free();
    await eventually('a create', async () => (await create()).status === 200);
    expect((await ask('GET', '/readyz')).body).toEqual({ status: 'ready' });
    const late = await system.createRun('```sh\necho after\n```');
    expect((await system.untilEnded(late)).state).toBe('SUCCEEDED');
    await letGoOn();
    expect(await system.untilEnded(running)).toMatchObject({ state: 'SUCCEEDED', session_id: session });
    expect(await system.logs()).toContain('the disk has room again');
  }, 240_000);
});
