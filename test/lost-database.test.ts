/** Tests the answers to clients while PostgreSQL is killed under load, and while PostgreSQL cannot start. */
import { readFileSync, renameSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { runCommand } from './support/command-line.ts';
import { runyardFile } from './support/programs.ts';
import { eventually, startSystem } from './support/system.ts';

const clients = 24;
const kills = 3;
/** Pause of a client between two requests, so that the starting database has processor time. */
const pauseMs = 50;
const runyard = await runyardFile();

const system = await startSystem({ workers: [] });
afterAll(() => system.stop(), 60_000);

const inCluster = (file: string) => path.join(system.dataDir, 'postgres/cluster', file);
const postmaster = () => Number(readFileSync(inCluster('postmaster.pid'), 'utf8').split('\n')[0]);

async function ask(method: 'GET' | 'POST', route: string): Promise<Response> {
  const response = await fetch(system.baseUrl() + route, {
    method,
    headers: {
      authorization: `Bearer ${system.key}`,
      ...(method === 'POST' && { 'content-type': 'application/json' }),
    },
    ...(method === 'POST' && { body: JSON.stringify({ prompt: 'wait' }) }),
  });
  await response.clone().arrayBuffer();
  return response;
}
const isReady = async () => (await ask('GET', '/readyz')).status === 200;

test('the service answers 503 with Retry-After, and never 500, to requests whose database connection is lost', {
  timeout: 180_000,
}, async () => {
  const seen = new Map<number, number>();
  let stopping = false;
  const load = Array.from({ length: clients }, async (_, index) => {
    while (!stopping) {
      const response = await ask(index % 3 === 0 ? 'POST' : 'GET', '/api/v1/agent/runs');
      seen.set(response.status, (seen.get(response.status) ?? 0) + 1);
      if (response.status === 503) expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
      await delay(pauseMs);
    }
  });
  for (let kill = 0; kill < kills; kill += 1) {
    const before = seen.get(200) ?? 0;
    await eventually('answers', async () => (seen.get(200) ?? 0) > before + 50);
    process.kill(postmaster(), 'SIGKILL');
    await eventually('a restart', isReady);
  }
  stopping = true;
  await Promise.all(load);
  expect([...seen.keys()].sort()).toEqual(seen.has(503) ? [200, 503] : [200]);
});

test('`/readyz` and the command `status` report that PostgreSQL does not start, until it has started', {
  timeout: 180_000,
}, async () => {
  const status = () =>
    runCommand([runyard, 'status'], { cwd: system.dataDir, env: { RUNYARD_DATA_DIR: system.dataDir } });
  const killed = postmaster();
  renameSync(inCluster('global/pg_control'), inCluster('global/away'));
  process.kill(killed, 'SIGKILL');
  const reason = await eventually('a reason', async () => {
    const { reason } = (await (await ask('GET', '/readyz')).json()) as { reason?: string };
    return reason?.includes('does not start') ? reason : null;
  });
  expect(reason).toMatch(/the embedded PostgreSQL does not start \(failed \d+ times/);
  const told = await status();
  expect(told.code).toBe(1);
  expect(told.output).toContain('not ready');
  expect(told.output).toContain('the embedded PostgreSQL does not start');
  expect((await ask('GET', '/healthz')).status).toBe(200);
  renameSync(inCluster('global/away'), inCluster('global/pg_control'));
  await eventually('a restart', isReady);
  expect((await status()).output).not.toContain('does not start');
});
