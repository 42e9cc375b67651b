import type { Installation } from '@runyard/contract/team/installation';
import { expect, onTestFinished, test } from 'vitest';
import { newPerson, newTeam, teamUidOf } from '../../../test/people.ts';
import { acceptedWorker, startTestProcess } from '../../../test/process.ts';
import { openTestService } from '../../../test/service.ts';
import { statusDomain } from './domain.ts';

const service = await openTestService();
const { db } = service.deps;
const read = async (key = service.key) => await service.request<Installation>('GET', '/installation', { key });

test("an owner of the operator's team reads services, workers, database and backups; nobody else does", async () => {
  const { status, body } = await read();
  expect(status).toBe(200);
  expect(body.database).toMatchObject({
    version: expect.stringMatching(/^\d+/),
    migration: expect.stringMatching(/^\d{4}_/),
  });
  expect(body.database.size_bytes).toBeGreaterThan(1_000_000);
  expect(body.last_backup_at).toBeUndefined();

  const team = await teamUidOf(service);
  const owner = await newPerson(service, team, 'owner');
  expect((await read(owner.key)).status).toBe(200);
  for (const role of ['admin', 'member', 'viewer'] as const) {
    const person = await newPerson(service, team, role);
    expect([role, (await read(person.key)).status]).toEqual([role, 403]);
  }
  const other = await newTeam(service);
  const stranger = await newPerson(service, other, 'owner');
  const refused = await read(stranger.key);
  expect(refused.status).toBe(403);
  expect(JSON.stringify(refused.body)).toContain("the team of the operator's key");
});

test('a service stores its version, machine, disk and problems, and stores the same problem only once a minute', async () => {
  let problem: string | null = null;
  let stores = 0;
  const watched = {
    ...db,
    query: (async (...args: Parameters<typeof db.query>) => {
      stores += 1;
      return await db.query(...args);
    }) as typeof db.query,
  };
  const domains = [{ name: 'bucket', readiness: { degraded: () => problem } }];
  const domain = statusDomain({ ...service.deps, db: watched }, domains);
  const [loop] = (await domain.loops?.()) ?? [];
  const report = async () => await loop?.work(new AbortController().signal);
  await db.query(`INSERT INTO service_instances (id) VALUES ($1) ON CONFLICT DO NOTHING`, [
    service.deps.serviceInstanceId,
  ]);
  await report();
  await report();
  expect(stores).toBe(1);
  const own = async () => (await read()).body.services.find(({ host }) => host !== undefined);
  expect(await own()).toMatchObject({
    is_alive: true,
    version: expect.any(String),
    disk: { free_bytes: expect.any(Number) },
  });
  expect((await own())?.problem).toBeUndefined();
  problem = 'the bucket does not answer';
  await report();
  expect((await own())?.problem).toBe('the bucket does not answer');
  await db.query(`UPDATE service_instances SET seen_at = now() - interval '1 minute' WHERE id = $1`, [
    service.deps.serviceInstanceId,
  ]);
  expect((await own())?.is_alive).toBe(false);
});

test('a worker that is lost is listed at once, and not any more when it is connected again', async () => {
  const workers = await startTestProcess(service.deps);
  onTestFinished(() => workers.close());
  const worker = await acceptedWorker(workers.baseUrl, service.key, 'runyard-rack-1');
  expect((await read()).body.gone_workers).toEqual([]);
  worker.close();
  await expect
    .poll(async () => (await read()).body.gone_workers)
    .toEqual([{ worker_host: 'runyard-rack-1', gone_at: expect.any(String), reason: 'lost' }]);
  const again = await acceptedWorker(workers.baseUrl, service.key, 'runyard-rack-1');
  await expect.poll(async () => (await read()).body.gone_workers).toEqual([]);
  again.close();
});

test('at most a thousand gone workers are remembered, the newest ones', async () => {
  const workers = await startTestProcess(service.deps);
  onTestFinished(() => workers.close());
  await db.query(
    `INSERT INTO gone_workers (worker_id, was_draining, gone_at) SELECT 'flood-' || n, false, now() - n * interval '1 second' FROM generate_series(1, 1500) n`,
  );
  const worker = await acceptedWorker(workers.baseUrl, service.key, 'runyard-rack-2');
  worker.close();
  const count = async () =>
    (await db.query<{ count: number }>('SELECT count(*)::int AS count FROM gone_workers'))[0]?.count;
  await expect.poll(count).toBeLessThanOrEqual(1_001);
  expect((await read()).body.gone_workers[0]?.worker_host).toBe('runyard-rack-2');
});
