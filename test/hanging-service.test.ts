/** Tests that a service that hangs delays few requests, if another service on the same database is behind the same proxy. */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createEmptyDatabase } from '../packages/service/test/database.ts';
import { endCommands, type RunningCommand, startCommand } from './support/command-line.ts';
import { freePort } from './support/free-port.ts';
import { runyardFile } from './support/programs.ts';
import { type Authority, ask, makeAuthority, proxies } from './support/tls-proxy.ts';

const runyard = await runyardFile();
const folder = mkdtempSync(path.join(tmpdir(), 'runyard-hanging-'));
let database: Awaited<ReturnType<typeof createEmptyDatabase>>;
let authority: Authority;
const services: { readonly command: RunningCommand; readonly pid: number; readonly port: number }[] = [];
let key: string;

beforeAll(async () => {
  database = await createEmptyDatabase();
  authority = makeAuthority(path.join(folder, 'certificates'));
  for (const name of ['one', 'two']) {
    const dataDir = path.join(folder, name);
    mkdirSync(dataDir, { mode: 0o700 });
    if (name === 'two') copyFileSync(path.join(folder, 'one/secrets-key'), path.join(dataDir, 'secrets-key'));
    const port = await freePort();
    const env = {
      RUNYARD_DATA_DIR: dataDir,
      RUNYARD_PORT: String(port),
      RUNYARD_DATABASE_URL: database.url,
      RUNYARD_BLOBS: path.join(folder, 'blobs'),
      RUNYARD_TRUSTED_PROXIES: '127.0.0.1',
    };
    const command = startCommand([runyard, 'service'], { cwd: folder, env });
    await command.sees('Runyard is running');
    const { pid } = JSON.parse(readFileSync(path.join(dataDir, 'service.json'), 'utf8')) as { pid: number };
    services.push({ command, pid, port });
  }
  key = readFileSync(path.join(folder, 'one/bootstrap-key'), 'utf8').trim();
}, 120_000);
afterAll(async () => {
  for (const { command } of services) command.child.kill('SIGTERM');
  await Promise.all(services.map(({ command }) => command.exited));
  endCommands();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

/** How long the clients send requests. */
const seconds = 20;
/** After this time, systemd restarts a unit whose service hangs. In this test, the service then continues. */
const watchdogSeconds = 34;

describe.each(['nginx', 'caddy'] as const)('%s', (name) => {
  const { problem, start } = proxies[name];
  const title = 'serves nearly all requests of ten clients at once while one of two services hangs';
  test.skipIf(problem !== null)(
    problem === null ? title : `${title} (skipped: ${problem})`,
    { timeout: 180_000 },
    async () => {
      const [one, two] = services;
      if (one === undefined || two === undefined) throw new Error('two services are needed');
      const options = {
        port: await freePort(),
        plainPort: await freePort(),
        authority,
        folder: path.join(folder, name),
      };
      const proxy = await start({ ...options, servicePort: one.port, secondPort: two.port });
      const tookMs: number[] = [];
      const failed: string[] = [];
      const until = performance.now() + seconds * 1000;
      const client = async (): Promise<void> => {
        while (performance.now() < until) {
          const began = performance.now();
          const { status } = await ask(authority, `${proxy.origin}/api/v1/session`, {
            headers: { authorization: `Bearer ${key}` },
          });
          const ms = performance.now() - began;
          tookMs.push(ms);
          if (status !== 200) failed.push(`${status} after ${Math.round(ms)} ms`);
        }
      };
      const clients = Array.from({ length: 10 }, client);
      const hang = setTimeout(() => process.kill(two.pid, 'SIGSTOP'), 2_000);
      const goOn = setTimeout(() => process.kill(two.pid, 'SIGCONT'), watchdogSeconds * 1000);
      try {
        await Promise.all(clients);
      } finally {
        clearTimeout(hang);
        clearTimeout(goOn);
        process.kill(two.pid, 'SIGCONT');
        await proxy.stop();
      }
      const slow = tookMs.filter((ms) => ms > 2_000);
      expect(failed).toEqual([]);
      // Each client waits at most for the request that the service had when it began to hang.
      expect(slow.length).toBeLessThanOrEqual(10);
      expect(
        slow.length / tookMs.length,
        `${slow.length} of ${tookMs.length} took ${slow.map(Math.round)} ms`,
      ).toBeLessThan(0.01);
    },
  );
});
