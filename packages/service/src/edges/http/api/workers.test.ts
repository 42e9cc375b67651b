import { randomUUIDv7 } from 'node:crypto';
import { maxConnectionsListed } from '@runyard/contract/limits';
import { ListConnectedSelfHostedWorkersResponse } from '@runyard/contract/workers/workers';
import { beforeEach, describe, expect, test } from 'vitest';
import { newBrowserSession } from '../../../../test/browser-session.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { db } = service.deps;
beforeEach(() => db.query('DELETE FROM worker_connections'));

/** Inserts a connection; returns its id. The row has the values of Runyard's worker unless `more` overrides them. */
async function insert(workerId: string, teamId: string | null, more: Readonly<Record<string, unknown>> = {}) {
  const id = randomUUIDv7();
  const row = { id, service_instance_id: id, worker_id: workerId, team_id: teamId, ...more };
  await db.query(
    `INSERT INTO worker_connections SELECT * FROM jsonb_populate_record(NULL::worker_connections,
       jsonb_build_object('draining', false, 'adopt_seconds', 0, 'connected_at', now(), 'last_seen_at', now()) || $1::jsonb)`,
    [JSON.stringify(row)],
  );
  return id;
}
const secondsAgo = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString();
const list = async (credential: { key?: string | null; headers?: Record<string, string> } = {}) =>
  ListConnectedSelfHostedWorkersResponse.parse(
    (await service.request('GET', '/agent/connected-self-hosted-workers', credential)).body,
  );

describe('GET /agent/connected-self-hosted-workers', () => {
  test('lists the workers of the team while they are connected, by name', async () => {
    await insert('box', service.teamId, { connected_at: secondsAgo(50) });
    await insert('box', service.teamId);
    await insert('gone', service.teamId, { last_seen_at: secondsAgo(200) });
    await insert('theirs', service.otherTeamId);
    await insert('Anvil', service.teamId);
    const { workers } = await list();
    expect(workers).toMatchObject([
      { worker_host: 'Anvil', connection_count: 1 },
      { worker_host: 'box', connection_count: 2 },
    ]);
    const [, box] = workers;
    expect(box?.connections.map(({ connected_at }) => connected_at)[0]).toBe(box?.connected_at);
  });

  test('shows for each connection its isolation, slots, version and disk', async () => {
    const id = await insert('box', service.teamId, {
      slots: 4,
      draining: true,
      version: '0.1.0',
      disk_free_bytes: 5_000_000_000,
      disk_total_bytes: 9_000_000_000,
      sandbox: {
        backend: 'bubblewrap',
        features: ['user', 'no-network'],
        missing: [{ feature: 'cgroup', reason: 'nobody delegates one' }],
      },
    });
    const used = [await service.newRun(), await service.newRun(), await service.newRun()];
    await db.query(
      `UPDATE executions SET connection_id = $1, phase = CASE WHEN run_id = $3 THEN 'idle' ELSE 'running' END
       WHERE run_id = ANY ($2::uuid[])`,
      [id, used, used[2]],
    );
    const [worker] = (await list()).workers;
    expect(worker?.connections).toMatchObject([
      {
        backend: 'bubblewrap',
        features: ['user', 'no-network'],
        missing_features: [{ feature: 'cgroup', reason: 'nobody delegates one' }],
        slots: { used: 2, total: 4 },
        version: '0.1.0',
        disk: { free_bytes: 5_000_000_000, total_bytes: 9_000_000_000 },
        draining: true,
      },
    ]);
  });

  test('shows only that a public worker is connected, because it reports nothing else', async () => {
    await insert('public', service.teamId);
    const [connection] = (await list()).workers[0]?.connections ?? [];
    expect(connection).toEqual({
      features: [],
      missing_features: [],
      slots: { used: 0 },
      draining: false,
      connected_at: expect.any(String),
      last_seen_at: expect.any(String),
    });
  });

  test('counts all connections of a name, and lists a bounded number', async () => {
    for (let n = 0; n < maxConnectionsListed + 2; n++) await insert('box', service.teamId);
    const [worker] = (await list()).workers;
    expect([worker?.connection_count, worker?.connections.length]).toEqual([
      maxConnectionsListed + 2,
      maxConnectionsListed,
    ]);
  });

  test('shows the workers of the service only to the operator, also in a browser session of the operator', async () => {
    await insert('runyard-one', null, { slots: 2 });
    const hosted = [{ worker_host: 'runyard-one', connections: [{ slots: { used: 0, total: 2 } }] }];
    expect((await list()).hosted_workers).toMatchObject(hosted);
    expect((await list({ key: null, headers: await newBrowserSession(service) })).hosted_workers).toMatchObject(hosted);
    const others = [
      { key: await service.newKey({ role: 'owner' }) },
      { key: await service.newKey({ kind: 'agent' }) },
      { key: service.otherKey },
    ];
    for (const other of others) expect(await list(other)).not.toHaveProperty('hosted_workers');
    const headers = await newBrowserSession(service, await service.newKey({ role: 'owner' }));
    expect(await list({ key: null, headers })).not.toHaveProperty('hosted_workers');
  });
});
