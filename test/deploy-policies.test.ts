/**
 * Tests the network policies of the chart and of the worker with a real network plugin. bin/test-kubernetes compiles the plugin
 * kube-router and runs this test, which needs root, ipset and iptables.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { labelsOf } from '../packages/worker/src/sandboxes/kubernetes/names.ts';
import { policyOf, readServicePods } from '../packages/worker/src/sandboxes/kubernetes/policy.ts';
import { full, hasTools, render } from './deploy/chart.ts';
import { type PolicyCluster, type PolicyPod, startPolicyCluster } from './deploy/policy-cluster.ts';
import { eventually } from './support/system.ts';

const program = process.env.TEST_KUBE_ROUTER;
const isSkipped = program === undefined || !hasTools;
const title = isSkipped
  ? 'enforced network policies (skipped: bin/test-kubernetes runs them)'
  : 'enforced network policies';
const limitMs = 120_000;

describe.skipIf(isSkipped)(title, { timeout: limitMs, tags: 'compiled' }, () => {
  const addresses = { service: '10.231.79.10', worker: '10.231.79.11', run: '10.231.79.12', neighbour: '10.231.79.13' };
  const others = { monitoring: '10.231.79.14', stranger: '10.231.79.15', metadata: '169.254.169.254' };
  const service = `http://${addresses.service}:4180`;
  const metrics = `http://${addresses.service}:9464`;
  const metadata = `http://${others.metadata}`;
  let cluster: PolicyCluster;

  beforeAll(async () => {
    const { resources } = render(full);
    const templateOf = (name: string) =>
      resources.find(({ metadata, spec }) => metadata.name === name && spec?.template)?.spec?.template;
    const [parts, worker] = [templateOf('ry-service'), templateOf('ry-worker')];
    const declared = (parts?.spec.containers[0]?.ports ?? []).map(({ name, containerPort }) => [name, containerPort]);
    const named = worker?.spec.containers[0]?.env?.find(({ name }) => name === 'RUNYARD_KUBERNETES_SERVICE_PODS');
    const owned = policyOf('runyard-runs', 'owner', readServicePods(named?.value ?? ''));
    const pod = (name: string, namespace: string, address: string, labels = {}, ports = { http: 8080 }): PolicyPod => ({
      name,
      namespace,
      address,
      labels,
      ports,
    });
    const ofRun = labelsOf('owner', { executionId: 'execution', taskId: 'run' });
    cluster = await startPolicyCluster(
      program ?? '',
      [
        pod('service', 'runyard', addresses.service, parts?.metadata?.labels, Object.fromEntries(declared)),
        pod('worker', 'runyard', addresses.worker, worker?.metadata?.labels),
        pod('run', 'runyard-runs', addresses.run, ofRun),
        pod('neighbour', 'runyard-runs', addresses.neighbour, ofRun),
        pod('monitoring', 'monitoring', others.monitoring),
        pod('stranger', 'default', others.stranger),
        { name: 'metadata', address: others.metadata, labels: {}, ports: { http: 80 } },
      ],
      [...resources.filter(({ kind }) => kind === 'NetworkPolicy'), JSON.parse(JSON.stringify(owned))],
    );
  }, limitMs);
  afterAll(() => cluster?.stop(), limitMs);

  /** Returns which of the places a pod reaches. */
  const reached = (from: string, ...places: string[]): Promise<boolean[]> =>
    Promise.all(places.map((url) => cluster.reaches(from, url)));
  const neighbour = `http://${addresses.neighbour}:8080`;
  const worker = `http://${addresses.worker}:8080`;

  test('without a network plugin, a run reaches everything, so the following tests can fail', async () => {
    const places = [service, metrics, metadata, cluster.api, neighbour, worker];
    await eventually('the pods', async () => !(await reached('run', ...places)).includes(false));
    cluster.enforce();
    await eventually('the policies', async () => !(await cluster.reaches('run', neighbour)), limitMs).catch(
      (error: Error) => {
        throw new Error(`${error.message}: ${cluster.log()}`);
      },
    );
  });

  test('a run reaches the service, but not its metrics, the metadata of the cloud, the API server, other runs and the worker', async () => {
    expect(await reached('run', service, metrics, metadata, cluster.api, neighbour, worker)).toEqual([
      true,
      ...Array(5).fill(false),
    ]);
  });

  test('nothing connects to a run or to the worker', async () => {
    for (const from of ['service', 'worker', 'stranger', 'monitoring'])
      expect(await reached(from, neighbour, from === 'worker' ? neighbour : worker), from).toEqual([false, false]);
  });

  test('the service reaches other places than the metadata of the cloud', async () => {
    expect(await reached('service', cluster.api, `http://${others.stranger}:8080`, metadata)).toEqual([
      true,
      true,
      false,
    ]);
  });

  test('only listed namespaces reach the service and its metrics', async () => {
    expect(await reached('monitoring', service, metrics)).toEqual([false, true]);
    expect(await reached('stranger', service, metrics)).toEqual([false, false]);
    expect(await reached('worker', service, metrics, metadata)).toEqual([true, false, false]);
  });
});
