/**
 * Starts deploy/compose.yaml with the commands of docs/deploy.md, in a container engine with its own network namespace, and executes runs.
 * It takes two minutes, so it runs only with `bin/test-long`.
 */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { ArtifactResponse } from '@runyard/contract/runs/artifacts';
import type { RunItem } from '@runyard/contract/runs/runs';
import { productVersion } from '@runyard/system/product-version';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { archiveOf, imageKinds, imageOf } from '../deploy/images/images.ts';
import { isOnPath } from './checks/system-packages.ts';
import { folder, hasTools, root, tools } from './deploy/chart.ts';
import { blockWith } from './deploy/pages.ts';
import { clients, postgresImage, seaweedImage } from './deploy/public-images.ts';
import { startTestEngine, type TestEngine } from './support/container-engine.ts';
import { isLong } from './support/long.ts';
import { hasEnded } from './support/run-kinds.ts';
import { eventually } from './support/system.ts';

const run = promisify(execFile);
const limitMs = 600_000;
const compose = parse(await readFile(path.join(root, 'deploy/compose.yaml'), 'utf8'), { merge: true }) as {
  services: Record<string, { image: string }>;
};

async function prepare(): Promise<{ engine: TestEngine; seaweed: Buffer } | string> {
  if (!isLong) return 'bin/test-long runs it';
  if (!hasTools) return 'bin/prepare-deploy.sh compiles docker-compose with Go';
  if (!existsSync(clients)) return `there is no ${clients}`;
  for (const program of ['docker', 'iptables', 'ip', 'nsenter', 'curl'])
    if (!isOnPath(program)) return `the program ${program} is not installed`;
  const seaweed = await seaweedImage(compose.services.s3?.image ?? '');
  if (typeof seaweed === 'string') return seaweed;
  const engine = await startTestEngine({ kind: 'namespace' });
  return typeof engine === 'string' ? engine : { engine, seaweed };
}

const prepared = await prepare();
const title = typeof prepared === 'string' ? `docker compose up (skipped: ${prepared})` : 'docker compose up';

describe.skipIf(typeof prepared === 'string')(title, { timeout: limitMs, tags: 'long' }, () => {
  const { engine, seaweed } = prepared as Exclude<typeof prepared, string>;
  const place = path.join(folder, 'compose');
  let key: string;
  let first: RunItem;

  /** Runs a command of the shell on the machine that has the engine, in a folder with deploy/ and the images of this version. */
  const shell = async (command: string): Promise<string> => {
    const words = ['--target', String(engine.pid), '--net', 'bash', '-euo', 'pipefail', '-c', command];
    const env = { ...process.env, DOCKER_HOST: engine.host, PATH: `${place}/bin:${process.env.PATH}` };
    const { stdout } = await run('nsenter', words, { cwd: place, env, timeout: limitMs, maxBuffer: 1 << 26 });
    return stdout;
  };
  const composed = (words: string): Promise<string> => shell(`docker compose --file deploy/compose.yaml ${words}`);
  const call = async <T>(at: string, body?: object): Promise<T> => {
    const data = body === undefined ? '' : `--header 'content-type: application/json' --data @-`;
    await writeFile(path.join(place, 'body'), JSON.stringify(body ?? {}));
    return JSON.parse(
      await shell(
        `curl --silent --show-error --fail-with-body --location --header 'authorization: Bearer ${key}' ${data} http://127.0.0.1:4180/api/v1${at} <body`,
      ),
    ) as T;
  };
  const finish = async (prompt: string): Promise<RunItem> => {
    const { run_id } = await call<RunItem>('/agent/runs', { prompt });
    return await eventually(
      'the end of the run',
      async () => {
        const found = await call<RunItem>(`/agent/runs/${run_id}`);
        return hasEnded(found) ? found : undefined;
      },
      180_000,
    );
  };
  const makesFile = '```sh\necho made >made.txt\nreport-artifact made.txt\n```';
  /** Returns the content of the artifact of a run. */
  const artifactOf = async (of: RunItem): Promise<string> => {
    const found = of.artifacts?.flatMap(({ data }) => ('artifact_uid' in data ? [data.artifact_uid] : []));
    const { data } = await call<ArtifactResponse>(`/agent/artifacts/${found?.[0]}`);
    return await shell(
      `curl --silent --show-error --fail --location '${'download_url' in data ? data.download_url : ''}'`,
    );
  };
  const bytesInBucket = async (): Promise<number> => {
    const printed = await composed(`exec -T s3 sh -c 'echo fs.du /buckets/runyard | weed shell 2>/dev/null'`);
    return Number(/logical size: +(\d+)/.exec(printed)?.[1] ?? expect.fail(printed));
  };
  /** Opens a connection from a container. Returns the code of the error, or `open`. */
  const connectFrom = async (container: string, host: string, port: number): Promise<string> => {
    const script = `const s = require('node:net').connect({ host: '${host}', port: ${port}, timeout: 2000 }); const say = (word) => { console.log(word); process.exit(); }; s.on('connect', () => say('open')).on('timeout', () => say('TIMEOUT')).on('error', (error) => say(error.code))`;
    return (await composed(`exec -T ${container} node -e "${script}"`)).trim();
  };

  beforeAll(async () => {
    await mkdir(path.join(place, 'bin'), { recursive: true });
    for (const name of ['make-secrets', 'compose.yaml'])
      await cp(path.join(root, 'deploy', name), path.join(place, 'deploy', name));
    // `docker compose` is a plug-in of the client. Its program also runs alone.
    const client = (await run('sh', ['-c', 'command -v docker'])).stdout.trim();
    const script = `#!/bin/sh\n[ "$1" = compose ] || exec ${client} "$@"\nshift\nexec '${tools}/docker-compose' "$@"\n`;
    await writeFile(path.join(place, 'bin/docker'), script, { mode: 0o755 });
    const images = { seaweed, postgres: await postgresImage(compose.services.postgres?.image ?? '') };
    for (const [name, tar] of Object.entries(images)) {
      await writeFile(path.join(place, `${name}.tar`), tar);
      await shell(`docker load --input ${name}.tar`);
    }
    for (const kind of imageKinds) {
      const name = compose.services[kind]?.image.replace(/^.*:-(.*)\}$/, '$1') ?? '';
      const request = { image: imageOf(kind, root), version: '1', name, source: undefined, compress: false };
      await writeFile(path.join(place, `${name.replace(':', '-')}-amd64.tar`), (await archiveOf(request)).pieces());
    }
  }, limitMs);
  afterAll(async () => {
    // If this fails, the engine ends the containers.
    await composed('down --volumes --timeout 5').catch(() => {});
    await engine[Symbol.asyncDispose]();
  }, limitMs);

  test('works with the commands of docs/deploy.md, the last of which lists the runs', async () => {
    const answer = await shell(blockWith('deploy.md', 'sh', 'deploy/make-secrets')).catch(async (error: Error) => {
      throw new Error(`${error.message}\n${await composed('logs --tail 40')}`);
    });
    expect(answer).toContain('"runs":[]');
    key = (await readFile(path.join(place, 'deploy/secrets/operator-key'), 'utf8')).trim();
  });

  test('a run works in a sandbox of the worker, and its artifact is in the bucket', async () => {
    const before = await bytesInBucket();
    first = await finish(makesFile);
    expect(first.state, JSON.stringify(first.status_message)).toBe('SUCCEEDED');
    expect(await bytesInBucket()).toBeGreaterThan(before);
    expect(await artifactOf(first)).toBe('made\n');
  });

  test('only the service reaches the database and the bucket', async () => {
    for (const [host, port] of [
      ['postgres', 5432],
      ['s3', 8333],
    ] as const) {
      expect(await connectFrom('service', host, port)).toBe('open');
      expect(await connectFrom('worker', host, port)).not.toBe('open');
      const inspected = JSON.parse(await shell(`docker inspect runyard-${host}-1`)) as [
        { NetworkSettings: { Networks: Record<string, { IPAddress: string }> } },
      ];
      const addresses = Object.values(inspected[0].NetworkSettings.Networks).map((each) => each.IPAddress);
      expect(addresses).toHaveLength(1);
      expect(await connectFrom('worker', addresses[0] ?? '', port)).not.toBe('open');
    }
  });

  test('all containers start again after they were killed, and later runs succeed', async () => {
    const names = ['postgres', 's3', 'service', 'worker'];
    const inspected = `docker inspect --format '{{.State.Pid}}' ${names.map((name) => `runyard-${name}-1`).join(' ')}`;
    const before = (await shell(inspected)).trim().split('\n');
    for (const pid of before) {
      // A container that does not run has the pid 0, which names the processes of the test.
      expect(Number(pid)).toBeGreaterThan(0);
      process.kill(Number(pid), 'SIGKILL');
    }
    const done = await eventually('a service that runs again', () => finish(makesFile).catch(() => undefined), 240_000);
    expect(done.state, JSON.stringify(done.status_message)).toBe('SUCCEEDED');
    for (const pid of (await shell(inspected)).trim().split('\n')) expect(before).not.toContain(pid);
  });

  test('the commands of docs/upgrade.md make a backup, wait for the runs, and start the images', async () => {
    const block = blockWith('upgrade.md', 'text', 'docker compose').replaceAll('0.2.0', productVersion());
    await shell(block);
    expect((await shell('head -c 30 before.backup')).trim()).toContain('{"format":"runyard-export"');
    const done = await eventually('a service that runs again', () => finish(makesFile).catch(() => undefined), 120_000);
    expect(done.state, JSON.stringify(done.status_message)).toBe('SUCCEEDED');
  });

  test('a service that hangs is started again', async () => {
    const state = `docker inspect --format '{{.State.Pid}}' runyard-service-1`;
    const first = (await shell(state)).trim();
    // The first process is docker-init, and the service is its child.
    const [service] = (await readFile(`/proc/${first}/task/${first}/children`, 'utf8')).split(' ');
    process.kill(Number(service), 'SIGSTOP');
    await eventually('another service', async () => (await shell(state)).trim() !== first, 120_000);
    const done = await eventually('a service that runs again', () => finish(makesFile).catch(() => undefined), 120_000);
    expect(done.state, JSON.stringify(done.status_message)).toBe('SUCCEEDED');
  });

  test('`stop worker` waits for a run, and `up` after `down` finds all runs and artifacts again', async () => {
    const { run_id } = await call<RunItem>('/agent/runs', { prompt: '```sh\necho begun\nsleep 8\n```' });
    await eventually(
      'a run at work',
      async () => (await call<RunItem>(`/agent/runs/${run_id}`)).state === 'INPROGRESS',
    );
    await composed('stop worker');
    expect((await call<RunItem>(`/agent/runs/${run_id}`)).state).toBe('SUCCEEDED');
    await composed('down');
    await composed('up --detach');
    expect((await call<RunItem>(`/agent/runs/${run_id}`)).state).toBe('SUCCEEDED');
    expect(await artifactOf(first)).toBe('made\n');
    expect((await finish(makesFile)).state).toBe('SUCCEEDED');
  });
});
