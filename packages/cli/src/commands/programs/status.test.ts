import { randomUUIDv7 } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { openTestService } from '../../../../service/test/service.ts';
import { createContext } from '../../context/context.ts';
import { status } from './status.ts';

const service = await openTestService();
afterEach(() => {
  process.exitCode = undefined;
});

async function print(key: string): Promise<string> {
  const parts: string[] = [];
  const context = createContext({ RUNYARD_BASE_URL: service.baseUrl, RUNYARD_API_KEY: key });
  await status({ ...context, out: (part) => void parts.push(part) }, {});
  return parts.join('');
}

test('status shows the workers that the caller may see, and warns if no worker is connected, because then runs wait', async () => {
  expect(await print(service.key)).toContain('no worker of the service is connected: runs wait for one');
  const insert = (workerId: string, teamId: string | null, more: object) =>
    service.deps.db.query(
      `INSERT INTO worker_connections (id, service_instance_id, worker_id, team_id, slots, version, draining, disk_free_bytes, disk_total_bytes, sandbox)
       SELECT $1, $1, $2, $3, m.slots, m.version, coalesce(m.draining, false), m.disk_free_bytes, m.disk_total_bytes, m.sandbox
       FROM jsonb_populate_record(NULL::worker_connections, $4) m`,
      [randomUUIDv7(), workerId, teamId, JSON.stringify(more)],
    );
  await insert('runyard-one', null, {
    slots: 4,
    version: '0.1.0\u001b[2J',
    disk_free_bytes: 5 * 1024 ** 3,
    disk_total_bytes: 9 * 1024 ** 3,
    sandbox: { backend: 'bubblewrap', features: ['user'], missing: [{ feature: 'cgroup', reason: 'r' }] },
  });
  await insert('build-1', service.teamId, { draining: true });
  const team = 'worker build-1: unknown isolation, 0 slots in use, draining\n';
  const text = await print(service.key);
  expect(text).toContain(team);
  expect(text).toMatch(
    /worker runyard-one: bubblewrap, without cgroup, 0 of 4 slots in use, 5\.0 GB of disk free, version 0\.1\.0/,
  );
  expect(text).not.toContain('\u001b[2J');
  const member = await print(await service.newKey({ role: 'member' }));
  expect(member).toContain(team);
  expect(member).not.toContain('runyard-one');
});
