/**
 * Breaks one part of an installation after the other (database, bucket, identity provider, worker), and tests what `/readyz`, `status`,
 * `doctor`, `doctor --url` and the page of the installation say, how soon they say it, and that all of it works again after the repair.
 * `full-disk.test.ts`, `proxies.test.ts` and `waiting-services.test.ts` do this for disks, proxies, and wrong keys and blobs.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Installation } from '@runyard/contract/team/installation';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CuttableLine, openCuttableLine } from './fakes/cuttable-line.ts';
import { endCommands, type RunningCommand, runCommand, startCommand } from './support/command-line.ts';
import { freePort } from './support/free-port.ts';
import { giveRuntime } from './support/head-start.ts';
import { runyardFile } from './support/programs.ts';
import { type S3ServerStart, startS3Server } from './support/s3-server.ts';
import { eventually, sandboxProblem } from './support/system.ts';
import { type SystemServer, startSystemPostgres, systemPostgres } from './support/system-postgres.ts';

const s3: S3ServerStart = await startS3Server();
const problem =
  sandboxProblem ??
  (systemPostgres === undefined ? 'no PostgreSQL of the system' : s3.kind === 'missing' ? s3.reason : null);

interface Readiness {
  readonly status: string;
  readonly reason?: string;
  readonly degraded?: string;
}

/** The texts that each place must show while a part does not work. `null`: the place shows nothing about it. */
interface Expected {
  /** Longest time until `/readyz` or the list of workers notices, in seconds. */
  readonly seconds: number;
  readonly readyz: { readonly status: number; readonly text: RegExp | null };
  readonly status: RegExp;
  readonly doctor: RegExp;
  readonly outside: RegExp;
  /** `null`: the service cannot answer. */
  readonly page: ((found: Installation) => boolean) | null;
}

describe.skipIf(problem !== null)(problem === null ? 'a fault' : `a fault (skipped: ${problem})`, () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'runyard-faults-'));
  let runyard: string;
  let postgres: SystemServer;
  let line: CuttableLine;
  let issuer: Server | undefined;
  let issuerPort: number;
  let env: Record<string, string>;
  let origin: string;
  let key: string;
  let service: RunningCommand;
  let worker: RunningCommand;

  const startIssuer = async (): Promise<void> => {
    const base = () => `http://127.0.0.1:${issuerPort}`;
    issuer = createServer((request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(
        JSON.stringify(
          request.url?.endsWith('openid-configuration')
            ? {
                issuer: base(),
                authorization_endpoint: `${base()}/authorize`,
                token_endpoint: `${base()}/token`,
                jwks_uri: `${base()}/keys`,
                response_types_supported: ['code'],
                subject_types_supported: ['public'],
                id_token_signing_alg_values_supported: ['RS256'],
              }
            : { keys: [] },
        ),
      );
    });
    await new Promise<void>((resolve) => issuer?.listen(issuerPort, '127.0.0.1', resolve));
    issuerPort = (issuer.address() as AddressInfo).port;
  };
  const stopIssuer = async (): Promise<void> => {
    issuer?.closeAllConnections();
    await new Promise((resolve) => issuer?.close(resolve));
  };
  const startWorker = (): RunningCommand =>
    startCommand([runyard, 'worker'], {
      cwd: folder,
      env: {
        RUNYARD_DATA_DIR: path.join(folder, 'worker'),
        RUNYARD_BASE_URL: origin,
        RUNYARD_API_KEY: key,
        RUNYARD_WORKER_NAME: 'runyard-rack-1',
      },
    });
  const call = (args: readonly string[], more: Record<string, string> = env) =>
    runCommand([runyard, ...args], {
      cwd: folder,
      env: { ...more, ...(key === undefined ? {} : { RUNYARD_API_KEY: key }) },
    });
  const readyz = async (): Promise<{ readonly status: number; readonly body: Readiness }> => {
    const answer = await fetch(`${origin}/readyz`, { signal: AbortSignal.timeout(10_000) });
    return { status: answer.status, body: (await answer.json()) as Readiness };
  };
  const page = async (): Promise<Installation | null> => {
    const answer = await fetch(`${origin}/api/v1/installation`, { headers: { authorization: `Bearer ${key}` } });
    return answer.ok ? ((await answer.json()) as Installation) : null;
  };
  const isWhole = async (): Promise<boolean> => {
    const { status, body } = await readyz();
    const found = await page();
    return (
      status === 200 &&
      body.degraded === undefined &&
      found?.workers.length === 1 &&
      found.services.every((each) => each.problem === undefined)
    );
  };

  beforeAll(async () => {
    if (s3.kind === 'missing') return;
    runyard = await runyardFile();
    postgres = await startSystemPostgres(systemPostgres ?? '');
    line = await openCuttableLine(postgres.url);
    issuerPort = 0;
    await startIssuer();
    const file = path.join(folder, 'sign-on.json');
    const provider = {
      id: 'acme',
      name: 'Acme ID',
      issuer: `http://127.0.0.1:${issuerPort}`,
      client_id: 'runyard',
      client_secret: 'secret',
      timeout_seconds: 1,
    };
    writeFileSync(file, JSON.stringify({ providers: [provider], teams: [] }), { mode: 0o600 });
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    env = {
      ...s3.server.env,
      RUNYARD_DATA_DIR: path.join(folder, 'service'),
      RUNYARD_PORT: String(port),
      RUNYARD_DATABASE_URL: line.url,
      RUNYARD_BLOBS: `s3://${s3.server.bucket}/blobs`,
      RUNYARD_OIDC_FILE: file,
    };
    service = startCommand([runyard, 'service'], { cwd: folder, env });
    await service.sees('Runyard is running', 60_000);
    key = readFileSync(path.join(folder, 'service/bootstrap-key'), 'utf8').trim();
    mkdirSync(path.join(folder, 'worker'));
    await giveRuntime(path.join(folder, 'worker'));
    worker = startWorker();
    await eventually('a whole installation', isWhole, 90_000);
  }, 240_000);
  afterAll(async () => {
    worker?.child.kill('SIGINT');
    await worker?.exited;
    postgres?.signal('SIGCONT');
    service?.child.kill('SIGTERM');
    await service?.exited;
    endCommands();
    await line?.close();
    await postgres?.stop();
    await stopIssuer();
    if (s3.kind === 'ready') await s3.server.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
  });

  const faults: readonly (readonly [
    name: string,
    destroy: () => unknown,
    repair: () => unknown,
    expected: Expected,
  ])[] = [
    [
      'the database cannot be reached',
      () => line.cut(),
      () => line.mend(),
      {
        seconds: 15,
        readyz: { status: 503, text: /the database does not answer/ },
        status: /not ready.*\n +the database does not answer/,
        doctor: /✗ database +the server of RUNYARD_DATABASE_URL cannot be used/,
        outside: /✗ readiness +the service is not ready: the database does not answer/,
        page: null,
      },
    ],
    [
      'the database hangs',
      () => postgres.signal('SIGSTOP'),
      () => postgres.signal('SIGCONT'),
      {
        seconds: 15,
        readyz: { status: 503, text: /the database does not answer/ },
        status: /not ready.*\n +the database does not answer/,
        doctor: /✗ database +the server of RUNYARD_DATABASE_URL cannot be used/,
        outside: /✗ readiness +the service is not ready: the database does not answer/,
        page: null,
      },
    ],
    [
      'the bucket is stopped',
      async () => await (s3.kind === 'ready' ? s3.server.kill() : undefined),
      async () => await (s3.kind === 'ready' ? s3.server.start() : undefined),
      {
        seconds: 60,
        readyz: { status: 200, text: /the bucket runyard of RUNYARD_BLOBS cannot be reached/ },
        status: /running.*\n +the bucket runyard of RUNYARD_BLOBS cannot be reached/,
        doctor: /✗ blobs +the bucket runyard of RUNYARD_BLOBS cannot be reached/,
        outside: /! readiness +.*the bucket runyard/,
        page: ({ services }) => services.some((each) => /the bucket runyard/.test(each.problem ?? '')),
      },
    ],
    [
      'the identity provider is stopped',
      stopIssuer,
      startIssuer,
      {
        seconds: 90,
        readyz: { status: 200, text: /people cannot sign in with the identity provider acme/ },
        status: /running.*\n +people cannot sign in with the identity provider acme/,
        doctor: /! single sign-on +people cannot sign in with Acme ID/,
        outside: /! readiness +people cannot sign in/,
        page: ({ services }) => services.some((each) => /people cannot sign in/.test(each.problem ?? '')),
      },
    ],
    [
      'the worker is killed',
      () => process.kill(-(worker.child.pid ?? 0), 'SIGKILL'),
      () => {
        worker = startWorker();
      },
      {
        seconds: 15,
        readyz: { status: 200, text: null },
        status: /no worker of the service is connected[\s\S]*worker runyard-rack-1: lost/,
        doctor: /✗ workers +none is connected to the service/,
        outside: /✓ service/,
        page: ({ workers, gone_workers: gone }) => workers.length === 0 && gone.some(({ reason }) => reason === 'lost'),
      },
    ],
  ];

  test.each(faults)(
    'if %s, every program says so, and says nothing after the repair',
    { timeout: 400_000 },
    async (name, destroy, repair, expected) => {
      await destroy();
      const brokenAt = performance.now();
      try {
        await eventually(
          `notice of: ${name}`,
          async () => {
            const { status, body } = await readyz();
            const text = body.reason ?? body.degraded ?? '';
            if (status !== expected.readyz.status || (expected.readyz.text?.test(text) ?? text === '') !== true)
              return null;
            if (expected.page === null) return true;
            const found = await page();
            return found !== null && expected.page(found) ? true : null;
          },
          expected.seconds * 1000,
        );
        const noticedIn = (performance.now() - brokenAt) / 1000;
        const [status, doctor, outside] = await Promise.all([
          call(['status']),
          call(['doctor']),
          call(['doctor', '--url', origin]),
        ]);
        expect(status.output).toMatch(expected.status);
        expect(doctor.output).toMatch(expected.doctor);
        expect(outside.output).toMatch(expected.outside);
        // No program blames a part that works.
        for (const { output } of [doctor, outside])
          expect(output).not.toMatch(/in use by another program|the proxy (does not|holds)/);
        if (process.env.SHOW_TIMES === '1') console.log(`${name}: noticed in ${noticedIn.toFixed(1)} s`);
      } finally {
        await repair();
      }
      const repairedAt = performance.now();
      await eventually(
        `recovery from: ${name}`,
        async () => ((await isWhole().catch(() => false)) ? true : null),
        150_000,
      );
      if (process.env.SHOW_TIMES === '1')
        console.log(`${name}: works again after ${((performance.now() - repairedAt) / 1000).toFixed(1)} s`);
    },
  );
});
