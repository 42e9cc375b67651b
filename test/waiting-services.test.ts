/**
 * Tests services that cannot work yet, because their database does not answer, or because they do not have the secrets key and blobs
 * that belong to the database.
 */
import { copyFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createEmptyDatabase } from '../packages/service/test/database.ts';
import { openCuttableLine } from './fakes/cuttable-line.ts';
import { closeAtEnd, newFolder } from './support/close-at-end.ts';
import { endCommands, runCommand, startCommand } from './support/command-line.ts';
import { freePort } from './support/free-port.ts';
import { runyardFile } from './support/programs.ts';
import { eventually } from './support/system.ts';

const runyard = await runyardFile();
const folder = newFolder();
const database = closeAtEnd(await createEmptyDatabase());
const line = closeAtEnd(await openCuttableLine(database.url));
afterAll(async () => {
  endCommands();
});

async function serviceIn(name: string) {
  const dataDir = path.join(folder, name);
  const port = await freePort();
  const env = { RUNYARD_DATA_DIR: dataDir, RUNYARD_PORT: String(port), RUNYARD_DATABASE_URL: line.url };
  return {
    dataDir,
    origin: `http://127.0.0.1:${port}`,
    start: (more: Record<string, string> = {}) =>
      startCommand([runyard, 'service'], { cwd: folder, env: { ...env, ...more } }),
    call: (...args: string[]) => runCommand([runyard, ...args], { cwd: folder, env }),
  };
}

test('a service waits for a database that is down, and for the secrets key and the blobs of the database', {
  timeout: 180_000,
}, async () => {
  line.cut();
  const one = await serviceIn('one');
  const first = one.start();
  await first.sees('the service is not ready yet: the database cannot be reached');
  expect((await fetch(`${one.origin}/healthz`)).status).toBe(200);
  expect(await (await fetch(`${one.origin}/readyz`)).json()).toMatchObject({ status: 'not_ready' });
  const refused = await fetch(`${one.origin}/api/v1/agent/runs`);
  expect([refused.status, refused.headers.get('content-type')]).toEqual([
    503,
    'application/problem+json; charset=utf-8',
  ]);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await refused.json()).toMatchObject({ error_code: 'resource_unavailable', retryable: true });
  expect((await one.call('status')).output).toContain('the database cannot be reached');
  line.mend();
  await first.sees('Runyard is running');

  const two = await serviceIn('two');
  const withOwnBlobs = two.start();
  await withOwnBlobs.sees('the secrets key of this service is not the key of its database');
  expect((await two.call('doctor')).output).toContain('the secrets key of this service is not the key of its database');
  expect(await readdir(two.dataDir)).not.toContain('secrets-key');
  await copyFile(path.join(one.dataDir, 'secrets-key'), path.join(two.dataDir, 'secrets-key'));
  await withOwnBlobs.sees('the blobs of this service are not the blobs of its database');
  withOwnBlobs.child.kill('SIGINT');
  await withOwnBlobs.exited;
  const second = two.start({ RUNYARD_BLOBS: path.join(one.dataDir, 'blobs') });
  await second.sees('Runyard is running');
  expect(second.output()).toContain('none in this data folder');
  expect(await readdir(two.dataDir)).not.toContain('bootstrap-key');
  second.child.kill('SIGINT');
  expect(await second.exited).toBe(0);

  // The operator declares that the key and the blobs of this folder are lost.
  const three = await serviceIn('three');
  const third = three.start();
  await third.sees('the secrets key of this service is not the key of its database');
  expect(await three.call('use-folder')).toMatchObject({ code: 0 });
  await third.sees('Runyard is running');
  third.child.kill('SIGINT');
  first.child.kill('SIGINT');
  expect(await Promise.all([third.exited, first.exited])).toEqual([0, 0]);
});

test('a service answers 503 within a second to requests while the database is down', { timeout: 120_000 }, async () => {
  const three = await serviceIn('three');
  const service = three.start();
  await service.sees('Runyard is running');
  line.cut();
  const asked: { status: number; ms: number; retryAfter: number }[] = [];
  await eventually('refusals', async () => {
    const startedAt = performance.now();
    const { status, headers } = await fetch(`${three.origin}/api/v1/agent/runs`, {
      headers: { authorization: 'Bearer a-key-that-nobody-has' },
    });
    asked.push({ status, ms: performance.now() - startedAt, retryAfter: Number(headers.get('retry-after')) });
    return asked.filter((each) => each.status === 503).length > 20;
  });
  const refused = asked.filter(({ status }) => status === 503);
  // Allow more than a second, because the machine may be busy.
  expect(Math.max(...refused.map(({ ms }) => ms))).toBeLessThan(2_000);
  expect(Math.min(...refused.map(({ retryAfter }) => retryAfter))).toBeGreaterThan(0);
  line.mend();
  service.child.kill('SIGINT');
  expect(await service.exited).toBe(0);
});
