import { readFile, rename } from 'node:fs/promises';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { query, testServers } from '../../../../test/servers.ts';
import { waitAfter } from './keep-running.ts';
import type { EmbeddedPostgres } from './start.ts';

const { folder, start } = testServers({ copies: true });

/** Returns the id of the server's first process; NaN while no server runs. */
const postmaster = async () =>
  Number((await readFile(path.join(folder(), 'cluster/postmaster.pid'), 'utf8').catch(() => '')).split('\n')[0] || NaN);

async function kill(): Promise<void> {
  process.kill(await postmaster(), 'SIGKILL');
}

async function answers(server: EmbeddedPostgres): Promise<void> {
  expect(server.problem()).toBeNull();
  expect(await query(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
}

test('the wait before the next start of the server doubles with each failed start, up to 30 s', () => {
  expect([1, 2, 3, 9, 10, 1000].map(waitAfter)).toEqual([100, 200, 400, 25_600, 30_000, 30_000]);
});

test('the service starts its PostgreSQL server again each time the server ends, even if that happens more than ten times in a minute', async () => {
  const server = await start();
  for (let round = 1; round <= 12; round += 1) {
    const killed = await postmaster();
    await kill();
    await vi.waitFor(
      async () => {
        expect(await postmaster()).not.toBe(killed);
        await answers(server);
      },
      { timeout: 60_000, interval: 20 },
    );
  }
}, 180_000);

test('the service tries to start its PostgreSQL server again until a start succeeds, and reports the failed starts', async () => {
  const server = await start();
  expect(server.problem()).toBeNull();
  const control = path.join(folder(), 'cluster/global/pg_control');
  await rename(control, `${control}.away`);
  await kill();
  await vi.waitFor(() => expect(server.problem()).toMatch(/does not start \(failed [3-9] times, the next try is in/), {
    timeout: 60_000,
  });
  await rename(`${control}.away`, control);
  await vi.waitFor(() => answers(server), { timeout: 60_000 });
});

test('`stop` does not wait for the next start of the server', async () => {
  const server = await start();
  const control = path.join(folder(), 'cluster/global/pg_control');
  await rename(control, `${control}.away`);
  await kill();
  await vi.waitFor(() => expect(server.problem()).toContain('does not start'), { timeout: 60_000 });
  await server.stop();
});
