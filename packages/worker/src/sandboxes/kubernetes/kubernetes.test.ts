/**
 * Tests the backend with the real client library and a fake API server. In place of a node, a test program starts the pods with
 * bubblewrap.
 * `bin/test-kubernetes` runs these tests against a real control plane and node.
 */
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  BatchV1Api,
  type V1Job,
  type V1JobSpec,
  type V1NetworkPolicy,
  type V1Pod,
  type V1PodList,
  type V1Secret,
} from '@kubernetes/client-node';
import { parseSettings } from '@runyard/contract/settings/settings';
import type { TaskAssignment } from '@runyard/contract/workers/worker-protocol';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type FakeWorkerService,
  fakeAssignment,
  startFakeWorkerService,
} from '../../../../../test/fakes/worker-service.ts';
import { type Scenario, startTestCluster, type TestCluster } from '../../../test/kubernetes/test-cluster.ts';
import { fixtureAgent, temporaryDataDir, until, workerEnvironment } from '../../../test/worker.ts';
import { startWorker, type Worker } from '../../worker.ts';

let cluster: TestCluster;
const startMs = 300_000;
beforeAll(async () => {
  cluster = await startTestCluster(fixtureAgent);
}, startMs);
afterAll(() => cluster?.[Symbol.asyncDispose](), startMs);

interface Started extends AsyncDisposable {
  readonly scenario: Scenario;
  readonly service: FakeWorkerService;
  worker: Worker;
  readonly settings: Readonly<Record<string, string>>;
  startAgain(): Promise<void>;
}

/** Starts a worker. `name`: name of the recording of the requests between this worker and the cluster. */
async function start(name: string, settings: Record<string, string> = {}): Promise<Started> {
  const scenario = await cluster.begin(name);
  const service = await startFakeWorkerService();
  const dataDir = await temporaryDataDir();
  const all = {
    RUNYARD_SANDBOX: 'kubernetes',
    RUNYARD_KUBERNETES_CONFIG: scenario.config,
    RUNYARD_KUBERNETES_AGENT_IMAGE: 'ghcr.io/test/agent:1',
    RUNYARD_KUBERNETES_IMAGE: 'debian:12',
    RUNYARD_KUBERNETES_SERVICE_URL: await cluster.reach(service.url),
    RUNYARD_WORKER_CACHE_MB: '0',
    RUNYARD_SANDBOX_MEMORY_MB: '512',
    ...settings,
  };
  const open = async (): Promise<Worker> => {
    const parsed = parseSettings(workerEnvironment(service, dataDir, all));
    if (!parsed.ok) throw new Error(parsed.problems.join('; '));
    return await startWorker(parsed.settings, { log: pino({ level: 'silent' }) });
  };
  const started: Started = {
    scenario,
    service,
    settings: all,
    worker: await open(),
    async startAgain() {
      started.worker = await open();
    },
    async [Symbol.asyncDispose]() {
      await started.worker.stop();
      await service.close();
      await scenario[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    },
  };
  await service.waitFor('worker_hello');
  return started;
}

const token = 'ryr_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG';

function assignment(id: string, image: string | undefined, ...args: string[]): TaskAssignment {
  const { type, data } = fakeAssignment(id, ['--fixture', ...args]);
  return {
    type,
    data: {
      ...data,
      env_vars: { ...data.env_vars, RUNYARD_RUN_TOKEN: token },
      ...(image === undefined ? {} : { docker_image: image }),
    },
  };
}

const failureOf = ({ service }: Started, id: string) =>
  service.waitFor('task_failed', (data) => data.execution_id === id);
/** Returns the answers to requests with this method and a matching path. */
function answersTo<T>({ scenario }: Started, method: string, path: RegExp): T[] {
  return scenario.exchanges
    .filter((each) => each.method === method && path.test(each.path))
    .map(({ answer }) => answer as T);
}
/** Returns the first item; fails the test if there are no items. */
function first<T>(items: readonly T[] | undefined): T {
  const [item] = items ?? [];
  if (item === undefined) throw new Error('there is none');
  return item;
}
/** Returns the pod that the cluster made for the Job of this test. */
const podOf = (it: Started): V1Pod => first(answersTo<V1PodList>(it, 'GET', /\/pods\?/).flatMap(({ items }) => items));
const jobs = /\/jobs(?:$|\?(?!.*dryRun))/;

test('an execution runs in a pod, and the objects of the execution are removed when the service has confirmed the end of the execution', async () => {
  await using it = await start('run');
  it.service.send(assignment('run-1', 'ghcr.io/team/box:2', 'sh', 'echo $(id -u)'));
  const ready = await it.service.waitFor('sandbox_ready', (data) => data.execution_id === 'run-1');
  expect(ready.backend).toBe('kubernetes');
  await it.service.waitFor('task_completed', (data) => data.execution_id === 'run-1');
  await until(() => answersTo(it, 'DELETE', /\/jobs\//).length > 0);
  const job = first(answersTo<V1Job>(it, 'POST', jobs));
  expect(job.metadata?.labels).toMatchObject({
    'app.kubernetes.io/managed-by': 'runyard',
    'runyard.dev/execution': 'run-1',
    'runyard.dev/run': 'task-of-run-1',
  });
  expect(job.spec).toMatchObject({
    suspend: true,
    backoffLimit: 0,
    podReplacementPolicy: 'Failed',
    activeDeadlineSeconds: 86_400,
    ttlSecondsAfterFinished: 3600,
  });
  const { spec } = podOf(it);
  expect(spec).toMatchObject({
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    hostname: 'sandbox',
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 10001,
      runAsGroup: 10001,
      seccompProfile: { type: 'RuntimeDefault' },
    },
  });
  // A real API server omits members that are false.
  for (const member of ['hostNetwork', 'hostPID', 'hostIPC', 'shareProcessNamespace'] as const)
    expect(spec?.[member] ?? false).toBe(false);
  expect(spec?.volumes?.filter(({ emptyDir, secret }) => !emptyDir && !secret)).toEqual([]);
  for (const container of [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])])
    expect(container.securityContext).toMatchObject({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      privileged: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    });
  const agent = first(spec?.containers);
  expect(agent.image).toBe('ghcr.io/team/box:2');
  expect(agent.resources?.limits).toMatchObject({ memory: '512Mi' });
  // The init container, which copies the agent, runs as another user, so that commands of the run cannot read the agent's Node.
  expect(first(spec?.initContainers).securityContext?.runAsUser).toBe(10002);
  expect(agent.volumeMounts).toContainEqual({ name: 'agent', mountPath: '/agent', readOnly: true });
});

test('the run token is passed in a Secret that the container of the run cannot see', async () => {
  await using it = await start('token');
  it.service.send(assignment('token-1', undefined, 'sh', 'true'));
  await it.service.waitFor('task_completed', (data) => data.execution_id === 'token-1');
  const job = first(answersTo<V1Job>(it, 'POST', jobs));
  const secret = first(answersTo<V1Secret>(it, 'POST', /\/secrets$/));
  expect(secret.metadata?.ownerReferences).toEqual([
    { apiVersion: 'batch/v1', kind: 'Job', name: job.metadata?.name, uid: job.metadata?.uid },
  ]);
  expect(JSON.stringify(job)).not.toContain('ryr_');
  const mounts = first(podOf(it).spec?.containers).volumeMounts?.map(({ name }) => name);
  expect(mounts).not.toContain('secret');
  // The Secret is deleted as soon as the agent runs, so a second pod could not start.
  expect(answersTo(it, 'DELETE', /\/secrets\//)).toHaveLength(1);
});

test('the network policy allows pods to connect only to the service', async () => {
  await using it = await start('policy');
  const policy = first(answersTo<V1NetworkPolicy>(it, 'POST', /\/networkpolicies$/));
  expect(policy.spec).toEqual({
    podSelector: { matchLabels: { 'runyard.dev/owner': policy.metadata?.labels?.['runyard.dev/owner'] } },
    policyTypes: ['Ingress', 'Egress'],
    egress: [
      {
        to: [{ ipBlock: { cidr: `${cluster.kubelet.address}/32` } }],
        ports: [{ protocol: 'TCP', port: expect.any(Number) }],
      },
    ],
  });
});

test('the cluster checks a Job with the RuntimeClass of the settings before the worker starts', async () => {
  await using it = await start('runtime-class', { RUNYARD_KUBERNETES_RUNTIME_CLASS: 'gvisor' });
  const probe = first(answersTo<V1Job>(it, 'POST', /\/jobs\?.*dryRun/));
  expect(probe.spec?.template.spec?.runtimeClassName).toBe('gvisor');
});

test('the message about a failed run has the exit code and the end of the output, without tokens', async () => {
  await using it = await start('failure');
  it.service.send(assignment('failure-1', undefined, 'sh', `echo it broke ${token}; exit 3`));
  const { exit_code, message } = await failureOf(it, 'failure-1');
  expect(message).toContain('it broke [redacted]');
  expect(exit_code).toBe(3);
});

test('the message about a pod that no node takes has the reason', async () => {
  await using it = await start('unschedulable', {
    RUNYARD_SANDBOX_MEMORY_MB: '1000000',
    RUNYARD_KUBERNETES_START_SECONDS: '3',
  });
  it.service.send(assignment('large', undefined, 'sh', 'true'));
  const { failure_reason, message } = await failureOf(it, 'large');
  expect(failure_reason).toBe('pod_unschedulable');
  expect(message).toContain('Insufficient memory');
});

test.each([
  ['missing', 'image_not_found'],
  ['private', 'image_no_access'],
  ['arm', 'image_wrong_architecture'],
])('the message about the image %s, which cannot be pulled, has the reason', async (name, reason) => {
  await using it = await start(`image-${name}`);
  it.service.send(assignment(name, `ghcr.io/test/${name}:1`, 'sh', 'true'));
  const { failure_reason, message } = await failureOf(it, name);
  expect(failure_reason).toBe(reason);
  expect(message).toContain(`ghcr.io/test/${name}:1`);
});

test('the pod of a cancelled run is ended', async () => {
  await using it = await start('cancel');
  it.service.send(assignment('cancelled', undefined, 'stubborn'));
  await it.service.waitFor('sandbox_ready', (data) => data.execution_id === 'cancelled');
  it.service.send({ type: 'task_cancellation', data: { task_id: 'task-of-cancelled', grace_ms: 100 } });
  const { task_state } = await it.service.waitFor('task_completed', (data) => data.execution_id === 'cancelled');
  expect(task_state).toBe('CANCELLED');
  // A real node removes a pod some moments after its last process.
  const phases = answersTo<V1PodList>(it, 'GET', /\/pods\?/).map(({ items }) =>
    items.map(({ status }) => status?.phase),
  );
  expect(phases).toContainEqual(['Running']);
  expect(phases.at(-1)).not.toContain('Running');
});

test('a worker adopts the pod of an earlier worker and reports the end of the pod, but deletes a forged Job', async () => {
  await using it = await start('adoption');
  it.service.send(assignment('kept', undefined, 'sh', 'sleep 8; exit 5'));
  await it.service.waitFor('sandbox_ready', (data) => data.execution_id === 'kept');
  it.worker.terminate();
  await it.worker.drained;
  // Forges a Job: copies the real Job under another name that also belongs to this data folder. Somebody with rights in the namespace
  // could do this.
  const batch = cluster.admin.makeApiClient(BatchV1Api);
  const name = first(answersTo<V1Job>(it, 'POST', jobs)).metadata?.name ?? '';
  const { metadata, spec } = await batch.readNamespacedJob({ name, namespace: 'runyard' });
  const forged = `${name.slice(0, -12)}0123456789ab`;
  const { labels = {}, annotations = {} } = metadata ?? {};
  const { selector: _, template, ...rest } = spec as V1JobSpec;
  const body = {
    metadata: { name: forged, labels, annotations },
    spec: { ...rest, suspend: true, template: { metadata: {}, ...(template.spec ? { spec: template.spec } : {}) } },
  };
  await batch.createNamespacedJob({ namespace: 'runyard', body });
  const hellos = () => it.service.messages.filter(({ type }) => type === 'worker_hello');
  const before = hellos().length;
  await it.startAgain();
  await until(() => hellos().length > before);
  expect(hellos().at(-1)?.data).toMatchObject({ executions: [{ execution_id: 'kept' }] });
  expect((await failureOf(it, 'kept')).exit_code).toBe(5);
  expect(cluster.kubelet.starts.filter((pod) => pod.startsWith(name))).toHaveLength(2);
  expect(cluster.kubelet.starts.filter((pod) => pod.startsWith(forged))).toEqual([]);
  await until(() => answersTo(it, 'DELETE', new RegExp(forged)).length > 0);
});

test('a worker does not start with a pod template that would weaken the isolation of the pods', async () => {
  await using it = await start('refusals');
  const folder = await temporaryDataDir();
  const template = path.join(folder, 'template.yaml');
  await writeFile(template, 'spec: { hostNetwork: true }');
  const parsed = parseSettings(
    workerEnvironment(it.service, folder, { ...it.settings, RUNYARD_KUBERNETES_POD_TEMPLATE: template }),
  );
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  await expect(startWorker(parsed.settings, { log: pino({ level: 'silent' }) })).rejects.toThrow('spec.hostNetwork');
  await rm(folder, { recursive: true });
});
