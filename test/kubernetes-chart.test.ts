/**
 * Installs the chart in the real cluster that bin/test-kubernetes starts. Executes runs, one of which attacks the others, upgrades the
 * chart while runs are created, and evicts services. The cluster has no kube-proxy and no name server, so this test itself forwards
 * connections to the addresses of Services.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiException, AppsV1Api, CoreV1Api, NodeV1Api, PolicyV1Api } from '@kubernetes/client-node';
import type { ListRunsResponse, RunItem } from '@runyard/contract/runs/runs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { archiveOf, imageKinds, imageOf } from '../deploy/images/images.ts';
import { type ControlPlane, startControlPlane } from '../packages/worker/test/kubernetes/control-plane.ts';
import type { Kubelet } from '../packages/worker/test/kubernetes/kubelet.ts';
import { startNode } from '../packages/worker/test/kubernetes/node.ts';
import { attackCommands } from './deploy/attack.ts';
import { makeForwarders } from './deploy/forwarders.ts';
import { hasEnded } from './support/run-kinds.ts';
import { type S3Server, startS3Server } from './support/s3-server.ts';
import { eventually } from './support/system.ts';
import { type SystemServer, startSystemPostgres, systemPostgres } from './support/system-postgres.ts';

const root = path.resolve(import.meta.dirname, '..');
const programs = process.env.TEST_KUBERNETES_PROGRAMS;
const helmProgram = process.env.TEST_HELM;
const isSkipped = programs === undefined || helmProgram === undefined || systemPostgres === undefined;
const title = isSkipped ? 'the chart in a cluster (skipped: bin/test-kubernetes runs it)' : 'the chart in a cluster';
const limitMs = 600_000;
const release = 'ry';
const namespace = 'runyard';

describe.skipIf(isSkipped)(title, { timeout: limitMs, tags: 'compiled' }, () => {
  const key = `ryk_${randomBytes(24).toString('hex')}`;
  const metricsToken = randomBytes(24).toString('hex');
  const { forward, addTls, close } = makeForwarders();
  let folder: string;
  let plane: ControlPlane;
  let node: Kubelet;
  let database: SystemServer;
  let s3: S3Server;
  let values: Record<string, object | string>;
  let origin: string;
  let looking: NodeJS.Timeout | undefined;

  const helm = async (command: 'install' | 'upgrade', more: object): Promise<void> => {
    const file = path.join(folder, 'values.json');
    values = { ...values, ...more };
    await writeFile(file, JSON.stringify(values));
    execFileSync(
      helmProgram ?? '',
      [command, release, path.join(root, 'deploy/helm/runyard'), '--namespace', namespace, '--values', file],
      {
        env: { PATH: process.env.PATH, HOME: folder, KUBECONFIG: path.join(plane.folder, 'admin.json') },
        stdio: 'pipe',
      },
    );
  };
  const core = () => plane.admin.makeApiClient(CoreV1Api);
  const servicePods = async () =>
    (await core().listNamespacedPod({ namespace, labelSelector: 'app.kubernetes.io/component=service' })).items.filter(
      ({ metadata, status }) =>
        metadata?.deletionTimestamp === undefined &&
        status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
    );
  const rolledOut = (revision: string) =>
    eventually(
      'the rollout of the service',
      async () => {
        const { items } = await plane.admin.makeApiClient(AppsV1Api).listNamespacedDeployment({ namespace });
        const [{ metadata, status, spec } = {}] = items;
        return (
          spec?.template.metadata?.annotations?.revision === revision &&
          status?.observedGeneration === metadata?.generation &&
          status?.updatedReplicas === 2 &&
          status?.readyReplicas === 2 &&
          status?.replicas === 2
        );
      },
      limitMs,
    ).catch(async (error: Error) => {
      const { items } = await core().listNamespacedPod({ namespace });
      const states = items.map(({ metadata, status }) => [
        metadata?.name,
        status?.containerStatuses,
        status?.conditions,
      ]);
      throw new Error(`${error.message}: ${JSON.stringify(states)}`);
    });
  const call = async <T>(method: string, at: string, body?: object): Promise<T> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' };
    const answer = await fetch(`${origin}/api/v1${at}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  };

  const sh = (...commands: string[]): string => commands.map((each) => `\`\`\`sh\n${each}\n\`\`\``).join('\n\n');
  const create = async (prompt: string): Promise<string> =>
    (await call<RunItem>('POST', '/agent/runs', { prompt })).run_id;
  const runOf = (runId: string) => call<RunItem>('GET', `/agent/runs/${runId}`);
  const endOf = (runId: string) =>
    eventually(
      'the end of the run',
      async () => {
        const found = await runOf(runId);
        return hasEnded(found) ? found : undefined;
      },
      limitMs / 2,
    ).catch(async (error: Error) => {
      const log = await core()
        .readNamespacedPodLog({ name: `${release}-worker-0`, namespace, tailLines: 20 })
        .catch(String);
      throw new Error(`${error.message}: ${log}`);
    });

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'runyard-chart-'));
    plane = await startControlPlane(programs ?? '');
    const archives = [];
    for (const kind of imageKinds) {
      const name = `registry.test/runyard-${kind}:1`;
      const request = { image: imageOf(kind, root), version: '1', name, source: undefined, compress: false };
      archives.push(await buffer((await archiveOf(request)).pieces()));
    }
    node = await startNode(plane, programs ?? '', path.join(root, 'packages/agent/src/main.ts'), archives);
    database = await startSystemPostgres(systemPostgres ?? '');
    const started = await startS3Server();
    if (started.kind === 'missing') throw new Error(started.reason);
    s3 = started.server;
    const reach = async (url: string): Promise<string> => {
      const { port } = new URL(url);
      const reached = new URL(url);
      reached.hostname = node.address;
      reached.port = String(await forward(node.address, 0, () => ({ host: '127.0.0.1', port: Number(port) })));
      return reached.href.replace(/\/$/, '');
    };
    const secret = (name: string, stringData: Record<string, string>) =>
      core().createNamespacedSecret({ namespace, body: { metadata: { name }, stringData } });
    await secret('database', { url: await reach(database.url) });
    await secret('keys', {
      'operator-key': key,
      'worker-key': `ryk_${randomBytes(24).toString('hex')}`,
      'secrets-key': randomBytes(32).toString('base64'),
    });
    const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: word } = s3.env;
    await secret('bucket', {
      credentials: `[default]\naws_access_key_id = ${id}\naws_secret_access_key = ${word}\n`,
    });
    await secret('metrics', { token: metricsToken });
    const small = { limits: { cpu: '2', memory: '1Gi', 'ephemeral-storage': '1Gi' } };
    values = {
      image: { registry: 'registry.test/', tag: '1', pullPolicy: 'Never' },
      baseUrl: 'http://runyard.test',
      database: { existingSecret: 'database' },
      secrets: { existingSecret: 'keys' },
      blobs: { url: `s3://${s3.bucket}`, endpoint: await reach(s3.endpoint), existingSecret: 'bucket' },
      service: { resources: small, podAnnotations: { revision: '1' } },
      metrics: { enabled: true, existingSecret: 'metrics' },
      worker: { replicas: 0, persistence: { enabled: false } },
      runs: { agentImage: 'ghcr.io/test/agent:1', defaultImage: 'debian:12' },
      unsafe: { shareKernelOfNodes: true },
    };
  }, limitMs);
  afterAll(async () => {
    clearInterval(looking);
    close();
    await node?.[Symbol.asyncDispose]();
    await plane?.[Symbol.asyncDispose]();
    await s3?.stop();
    await database?.stop();
    await rm(folder, { recursive: true, force: true });
  }, limitMs);

  test('two services become ready in a namespace with the Pod Security level restricted', async () => {
    await helm('install', {});
    await rolledOut('1');
    const service = await core().readNamespacedService({ name: release, namespace });
    const address = service.spec?.clusterIP ?? '';
    let ready = await servicePods();
    let turn = 0;
    // Do the work of kube-proxy: forward each connection to the next ready pod.
    looking = setInterval(() => void servicePods().then((found) => (ready = found)), 500);
    for (const each of [address, '10.0.0.1']) execFileSync('ip', ['addr', 'add', `${each}/32`, 'dev', 'ry-pods']);
    await forward(address, 4180, () => {
      turn += 1;
      return { host: ready[turn % ready.length]?.status?.podIP ?? '', port: 4180 };
    });
    await forward('10.0.0.1', 443, () => ({ host: '127.0.0.1', port: Number(new URL(plane.server).port) }));
    origin = `http://${address}:4180`;
    expect((await fetch(`${origin}/readyz`)).status).toBe(200);
  });

  test('the worker executes a run in a pod in the namespace for runs, with no other rights than those of its Role', async () => {
    // Two runs at the same time must fit on the node.
    const env = { RUNYARD_SANDBOX_MEMORY_MB: 512 };
    await helm('upgrade', { worker: { persistence: { enabled: false }, serviceUrl: origin, env } });
    const run = await endOf(await create(sh('echo made')));
    expect(run, JSON.stringify(run.status_message)).toMatchObject({ state: 'SUCCEEDED' });
  });

  test('a run finds no token of another run or of a service account, and the API server shows it no Secrets', async () => {
    const api = await addTls(node.address, plane.server);
    const victim = await create(sh('sleep 600'));
    await eventually('the work of the victim', async () => (await runOf(victim)).state === 'INPROGRESS', limitMs / 2);
    try {
      const attacker = await create(sh(...attackCommands(api)));
      const run = await endOf(attacker);
      const conversation = JSON.stringify(await call('GET', `/agent/runs/${attacker}/conversation`));
      expect(run, conversation).toMatchObject({ state: 'SUCCEEDED' });
      expect(await runOf(victim)).toMatchObject({ state: 'INPROGRESS' });
    } finally {
      await call('POST', `/agent/runs/${victim}/cancel`, {});
      await endOf(victim);
    }
  });

  test('every request succeeds during an upgrade under load', async () => {
    const created: string[] = [];
    let isOver = false;
    const load = async (): Promise<void> => {
      while (!isOver) {
        const { run_id } = await call<RunItem>('POST', '/agent/runs', {
          prompt: 'Wait',
          config: { worker_host: 'nobody' },
        });
        created.push(run_id);
        await sleep(50);
      }
    };
    await helm('upgrade', { service: { ...(values.service as object), podAnnotations: { revision: '2' } } });
    const upgrading = rolledOut('2').finally(() => {
      isOver = true;
    });
    await Promise.all([load(), upgrading]);
    expect(created.length).toBeGreaterThan(20);
    const listed: string[] = [];
    let more = '';
    do {
      const page = await call<ListRunsResponse>('GET', `/agent/runs?limit=100${more}`);
      listed.push(...page.runs.filter(({ prompt }) => prompt === 'Wait').map(({ run_id }) => run_id));
      more = page.page_info.has_next_page ? `&cursor=${encodeURIComponent(page.page_info.next_cursor ?? '')}` : '';
    } while (more !== '');
    expect(listed.sort()).toEqual(created.sort());
  });

  test('each service shows its metrics on a separate port, only to readers with the token', async () => {
    const pods = await servicePods();
    expect(pods).toHaveLength(2);
    for (const { status } of pods) {
      const url = `http://${status?.podIP}:9464/metrics`;
      expect((await fetch(url)).status).toBe(401);
      const answer = await fetch(url, { headers: { authorization: `Bearer ${metricsToken}` } });
      expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('runyard_queue_depth')]);
    }
  });

  test('the cluster refuses to evict the second of two services until another service is ready', async () => {
    const pods = await servicePods();
    const evict = async (name = ''): Promise<number> =>
      await core()
        .createNamespacedPodEviction({ name, namespace, body: { metadata: { name, namespace } } })
        .then(
          () => 201,
          (error: ApiException<unknown>) => error.code,
        );
    await eventually(
      'the disruption budget',
      async () => {
        const { items } = await plane.admin.makeApiClient(PolicyV1Api).listNamespacedPodDisruptionBudget({ namespace });
        return items[0]?.status?.disruptionsAllowed === 1;
      },
      limitMs / 4,
    );
    expect(await evict(pods[0]?.metadata?.name)).toBe(201);
    expect(await evict(pods[1]?.metadata?.name)).toBe(429);
    expect((await fetch(`${origin}/readyz`)).status).toBe(200);
    await rolledOut('2');
  });

  test('helm refuses a RuntimeClass whose handler shares the kernel of the node', async () => {
    const body = { metadata: { name: 'isolated' }, handler: 'runc' };
    await plane.admin.makeApiClient(NodeV1Api).createRuntimeClass({ body });
    const before = values;
    const runs = { ...(values.runs as object), runtimeClassName: 'isolated' };
    await expect(helm('upgrade', { runs, unsafe: {} })).rejects.toThrow('isolated have the handler runc');
    values = before;
  });

  test('a run fails if the quota of the namespace is used up, and the message of the run says how to find the reason', async () => {
    await helm('upgrade', {
      runs: { ...(values.runs as object), quota: { pods: '0' } },
      worker: {
        ...(values.worker as object),
        env: { RUNYARD_KUBERNETES_START_SECONDS: 10, RUNYARD_SANDBOX_MEMORY_MB: 512 },
      },
    });
    const run = await endOf(await create(sh('echo made')));
    expect(run.state).not.toBe('SUCCEEDED');
    expect(JSON.stringify(run.status_message)).toContain('the cluster made no pod');
  });
});
