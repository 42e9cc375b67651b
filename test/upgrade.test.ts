/**
 * Tests an upgrade while runs are in progress. First, service and worker of an older commit run. Then the older service stops, and the present
 * service adopts the database and gets all connections. At last, the present worker adopts the sandboxes of
 * the older worker.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, openSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { RunItem } from '@runyard/contract/runs/runs';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { serviceNodeFlags } from '../packages/cli/src/supervise/stack.ts';
import { createEmptyDatabase } from '../packages/service/test/database.ts';
import { endSandboxes } from '../packages/worker/src/backends/end-sandboxes.ts';
import { unmountBelow } from '../packages/worker/src/state/disk-image.ts';
import { compiledCode } from './support/compiled-code.ts';
import { programFile } from './support/programs.ts';
import { hasEnded } from './support/run-kinds.ts';
import { eventually, killHard, sandboxProblem } from './support/system.ts';

const root = path.resolve(import.meta.dirname, '..');
/** The older commit, the last one before the present baseline of the migrations. */
const olderCommit = '42e71785';
const key = 'ryk_test-of-an-upgrade-0123456789abcdef';

const hasHistory = ((): boolean => {
  try {
    execFileSync('git', ['cat-file', '-e', `${olderCommit}^{commit}`], { cwd: root, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();
const problem = sandboxProblem ?? (hasHistory ? null : `the commit ${olderCommit} is not in this clone`);

/** Writes the sources of the older commit into a folder, with the installed packages of this checkout. */
function checkOut(commit: string, folder: string): void {
  mkdirSync(folder);
  execFileSync('sh', ['-c', `git archive ${commit} | tar -x -C "$0"`, folder], { cwd: root });
  for (const from of ['node_modules', ...globSync('packages/*/node_modules', { cwd: root })]) {
    if (!existsSync(path.join(folder, from, '..'))) continue;
    mkdirSync(path.join(folder, from), { recursive: true });
    for (const name of readdirSync(path.join(root, from)))
      if (name !== '@runyard') symlinkSync(path.join(root, from, name), path.join(folder, from, name));
  }
  const own = path.join(folder, 'node_modules/@runyard');
  mkdirSync(own);
  for (const name of readdirSync(path.join(folder, 'packages')))
    symlinkSync(path.join(folder, 'packages', name), path.join(own, name));
}

/** The files with which the present programs start. The older programs start from their sources. */
const presentFiles = { service: await programFile('service'), worker: await programFile('worker') };

describe.skipIf(problem)(`an upgrade${problem ? ` (skipped: ${problem})` : ''}`, () => {
  let folder: string;
  let dataDir: string;
  let database: Awaited<ReturnType<typeof createEmptyDatabase>>;
  let log: number;
  const children: ChildProcess[] = [];
  const sockets = new Set<net.Socket>();
  /** Port of the service that gets new connections. */
  let target = 0;
  /** A proxy in front of the services, as an installation has one. */
  const proxy = net.createServer((socket) => {
    const onward = net.connect(target, '127.0.0.1');
    for (const each of [socket, onward]) {
      sockets.add(each);
      each.on('error', () => undefined).on('close', () => [socket, onward].forEach((one) => void one.destroy()));
    }
    socket.pipe(onward).pipe(socket);
  });
  const origin = () => `http://127.0.0.1:${(proxy.address() as net.AddressInfo).port}`;

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'runyard-upgrade-'));
    dataDir = path.join(folder, 'data');
    mkdirSync(dataDir);
    log = openSync(path.join(folder, 'programs.log'), 'a');
    database = await createEmptyDatabase();
    checkOut(olderCommit, path.join(folder, 'older'));
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  });
  afterAll(async () => {
    for (const child of children) await killHard(child);
    for (const socket of sockets) socket.destroy();
    proxy.close();
    await endSandboxes(dataDir);
    for (const place of sandboxPlaces()) {
      await unmountBelow(place);
      await rm(place, { recursive: true, force: true });
    }
    await database?.drop();
    await rm(folder, { recursive: true, force: true, maxRetries: 20 });
  }, 60_000);

  const logs = () => readFileSync(path.join(folder, 'programs.log'), 'utf8');
  const start = (checkout: string, program: 'service' | 'worker', env: Record<string, string>): ChildProcess => {
    const flags = program === 'service' ? serviceNodeFlags : [];
    const file = checkout === root ? presentFiles[program] : path.join(checkout, `packages/${program}/src/main.ts`);
    const child = spawn(process.execPath, [...flags, file], {
      env: {
        PATH: process.env.PATH ?? '',
        HOME: process.env.HOME ?? '/',
        RUNYARD_DATA_DIR: dataDir,
        RUNYARD_LOG: 'info',
        ...compiledCode(),
        ...env,
      },
      stdio: ['pipe', log, log],
      cwd: checkout,
    });
    children.push(child);
    return child;
  };
  /** Starts a service. Resolves to its port when it is ready. */
  const startService = async (
    checkout: string,
    more: Record<string, string> = {},
  ): Promise<{ service: ChildProcess; port: number }> => {
    const file = path.join(more.RUNYARD_DATA_DIR ?? dataDir, 'service.json');
    await rm(file, { force: true });
    const service = start(checkout, 'service', {
      RUNYARD_PORT: '0',
      RUNYARD_BOOTSTRAP_KEY: key,
      RUNYARD_DATABASE_URL: database.url,
      ...more,
    });
    const port = await eventually('start of the service', async () => {
      if (service.exitCode !== null) throw new Error(`the service ended:\n${logs().slice(-3000)}`);
      return existsSync(file) && Number(new URL(JSON.parse(readFileSync(file, 'utf8')).base_url).port);
    });
    return { service, port };
  };
  const startWorker = (checkout: string) =>
    start(checkout, 'worker', {
      RUNYARD_BASE_URL: origin(),
      RUNYARD_API_KEY: key,
      RUNYARD_WORKER_NAME: 'runyard-upgraded',
      RUNYARD_ADOPT_SECONDS: '60',
    });
  const call = async <T>(base: string, method: string, route: string, body?: object): Promise<T> => {
    const response = await fetch(`${base}/api/v1${route}`, {
      method,
      // A service that stops closes the connections that are open for a next request.
      headers: {
        authorization: `Bearer ${key}`,
        connection: 'close',
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${route} gave ${response.status}: ${await response.text()}`);
    return (await response.json()) as T;
  };
  const create = async (base: string, prompt: string): Promise<string> =>
    (
      await call<{ run_id: string }>(base, 'POST', '/agent/runs', {
        prompt,
        config: { model_id: 'runbook', idle_timeout_minutes: 0 },
      })
    ).run_id;
  const until = (base: string, runId: string, accept: (run: RunItem) => boolean) =>
    eventually(`a state of run ${runId}`, async () => {
      const run = await call<RunItem>(base, 'GET', `/agent/runs/${runId}`);
      return accept(run) ? run : null;
    });
  /** Returns the folders of sandboxes, which workers have logged. */
  const sandboxPlaces = () => {
    const lines = logs()
      .split('\n')
      .filter((line) => line.includes('"sandboxes live here"'));
    return [...new Set(lines.map((line) => String(JSON.parse(line).folder)))];
  };

  test('continues the runs of older services and workers, and loses no run', { timeout: 240_000 }, async () => {
    const older = await startService(path.join(folder, 'older'));
    target = older.port;
    const olderWorker = startWorker(path.join(folder, 'older'));
    const long = await create(
      origin(),
      '```sh\ntouch begun; while ! [ -e go ]; do sleep 0.1; done; echo finished | tee end.txt; report-artifact end.txt\n```',
    );
    const workspace = await eventually('begin of the run', async () =>
      sandboxPlaces()
        .flatMap((place) => globSync(path.join(place, 's/*/workspace/begun')))
        .map((file) => path.dirname(file))
        .at(0),
    );

    const factory = await call<{ uid: string }>(origin(), 'POST', '/factory', { name: 'Upgrades' });
    const webhook = await call<{ url: string }>(origin(), 'POST', `/factory/${factory.uid}/webhooks`, {
      name: 'Alerts',
      auth_mode: 'url_token',
    });

    const throughOlder = await create(origin(), '```sh\necho older\n```');
    expect(await until(origin(), throughOlder, hasEnded)).toMatchObject({ state: 'SUCCEEDED' });
    // A migration needs newer code, so the older service stops before the present one starts. Its worker and sandboxes continue.
    older.service.kill('SIGTERM');
    await eventually(
      'end of the older service',
      async () => older.service.exitCode !== null || older.service.signalCode !== null,
    );
    const present = await startService(root);
    target = present.port;
    const received = await fetch(`${origin()}${new URL(webhook.url).pathname}`, {
      method: 'POST',
      body: JSON.stringify({ status: 'firing' }),
    });
    expect([received.status, await received.text()]).toEqual([202, expect.any(String)]);
    const throughPresent = await create(`http://127.0.0.1:${present.port}`, '```sh\necho present\n```');
    const listed = await call<{ deliveries: object[] }>(
      `http://127.0.0.1:${present.port}`,
      'GET',
      '/webhook-deliveries',
    );
    expect(listed.deliveries).toMatchObject([{ label: 'ACCEPTED', webhook_name: 'Alerts' }]);
    for (const runId of [throughOlder, throughPresent])
      expect(await until(origin(), runId, hasEnded)).toMatchObject({ state: 'SUCCEEDED' });
    const afterTheSwitch = await create(origin(), '```sh\necho switched\n```');
    expect(await until(origin(), afterTheSwitch, hasEnded)).toMatchObject({ state: 'SUCCEEDED' });

    await killHard(olderWorker);
    startWorker(root);
    const byPresentWorker = await create(origin(), '```sh\necho upgraded\n```');
    expect(await until(origin(), byPresentWorker, hasEnded)).toMatchObject({ state: 'SUCCEEDED' });
    expect(await call(origin(), 'GET', `/agent/runs/${long}`)).toMatchObject({ state: 'INPROGRESS' });
    await writeFile(path.join(workspace, 'go'), '');
    expect(await until(origin(), long, hasEnded)).toMatchObject({
      state: 'SUCCEEDED',
      artifacts: [{ data: { filename: 'end.txt' } }],
    });
  });

  // The commits of the sentence are the upgrade that it promises.
  test('of a database that is too old works as the error says', { timeout: 600_000, tags: 'long' }, async () => {
    const oldest = 'b9d5a8d5';
    const sources = path.join(folder, 'oldest');
    checkOut(oldest, sources);
    const old = await createEmptyDatabase();
    onTestFinished(() => old.drop());
    const db = new pg.Client(old.url);
    await db.connect();
    await db.query(
      'CREATE TABLE schema_migrations (version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())',
    );
    const files = path.join(sources, 'packages/service/src/platform/store/migrations');
    for (const name of readdirSync(files)
      .filter((each) => each.endsWith('.sql'))
      .sort()
      .slice(0, 20)) {
      const sql = readFileSync(path.join(files, name), 'utf8');
      await db.query(sql);
      const checksum = createHash('sha256').update(sql).digest('hex');
      await db.query('INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)', [
        Number(name.slice(0, 4)),
        name.slice(0, -4),
        checksum,
      ]);
    }
    await db.end();
    const place = path.join(folder, 'old-data');
    mkdirSync(place);
    const env = { RUNYARD_DATA_DIR: place, RUNYARD_DATABASE_URL: old.url };
    const error = await startService(root, env).catch((reason: Error) => reason.message);
    expect(error).toMatch(
      /too old for this Runyard: its last migration is \d{4}_\w+\. Start the Runyard of commit b9d5a8d5 once, then that of commit 42e71785 once on it, then this one/,
    );
    for (const checkout of [sources, path.join(folder, 'older'), root]) {
      const { service, port } = await startService(checkout, env);
      await eventually('a ready service', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok);
      await killHard(service);
    }
  });
});
