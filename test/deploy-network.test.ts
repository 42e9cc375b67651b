/** Tests which pods the network policies, the Service and the ServiceMonitor of the chart select, and which RuntimeClasses it accepts. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { settingsTable } from '@runyard/contract/settings/settings';
import { describe, expect, test } from 'vitest';
import { readServicePods } from '../packages/worker/src/sandboxes/kubernetes/policy.ts';
import { kubeconfig } from '../packages/worker/test/kubernetes/control-plane.ts';
import {
  folder,
  full,
  hasTools,
  helm,
  type Labels,
  least,
  type Resource,
  render,
  renderWith,
  type Selector,
  skipped,
} from './deploy/chart.ts';

/** Returns the only object of this kind and name. */
function one(values: object, kind: string, name: string): Resource {
  const found = render(values).resources.filter((each) => each.kind === kind && each.metadata.name === name);
  expect(found, `${kind} ${name}`).toHaveLength(1);
  return found[0] as Resource;
}
const selects = ({ matchLabels = {} }: Selector = {}, labels: Labels = {}): boolean =>
  Object.entries(matchLabels).every(([name, value]) => labels[name] === value);
/** Returns the names of the workloads whose pods the selector selects. */
const selected = (values: object, selector: Selector | undefined): string[] =>
  render(values)
    .resources.filter(({ spec }) => spec?.template && selects(selector, spec.template.metadata?.labels))
    .map(({ metadata }) => metadata.name);
const both = ['Ingress', 'Egress'];
const outside = [
  { ipBlock: { cidr: '0.0.0.0/0', except: ['169.254.0.0/16', '168.63.129.16/32', '100.100.100.200/32'] } },
  { ipBlock: { cidr: '::/0', except: ['fd00:ec2::254/128', 'fd20:ce::254/128'] } },
  { namespaceSelector: {} },
];

describe.skipIf(!hasTools)(`the network of the chart${skipped}`, { tags: 'compiled' }, () => {
  test('is closed for every pod in the namespace of the runs', () => {
    const { metadata, spec } = one(least, 'NetworkPolicy', 'ry-closed');
    expect(metadata.namespace).toBe('runyard-runs');
    expect(spec).toEqual({ podSelector: {}, policyTypes: both });
  });

  test('has a policy for the pods of the service, in which the metadata addresses of clouds are closed', () => {
    const { spec } = one(least, 'NetworkPolicy', 'ry-service');
    expect(selected(least, spec?.podSelector)).toEqual(['ry-service']);
    expect(spec).toMatchObject({ policyTypes: both, egress: [{ to: outside }] });
    expect(spec?.ingress).toEqual([{ ports: [{ protocol: 'TCP', port: 'http' }] }]);
  });

  test('lets only the listed peers, the worker and the runs reach the service, and only the listed namespaces its metrics', () => {
    const { spec } = one(full, 'NetworkPolicy', 'ry-service');
    const [api, metrics] = spec?.ingress ?? [];
    expect(selected(full, api?.from?.[0]?.podSelector)).toEqual(['ry-worker']);
    expect(api?.from?.slice(1)).toEqual([
      { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'runyard-runs' } } },
      ...full.networkPolicy.serviceFrom,
    ]);
    expect(metrics).toEqual({
      ports: [{ protocol: 'TCP', port: 'metrics' }],
      from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }],
    });
  });

  test('has a policy for the pods of the worker, which accept no connections', () => {
    const { spec } = one(least, 'NetworkPolicy', 'ry-worker');
    expect(selected(least, spec?.podSelector)).toEqual(['ry-worker']);
    expect(spec).not.toHaveProperty('ingress');
    expect(spec?.policyTypes).toEqual(both);
    const [service, others] = spec?.egress ?? [];
    expect(selected(least, service?.to?.[0]?.podSelector)).toEqual(['ry-service']);
    expect(service?.ports).toEqual([{ protocol: 'TCP', port: 'http' }]);
    expect(others?.to).toEqual(outside);
    expect(others?.ports?.map(({ port }) => port)).toEqual([53, 53, 443, 6443]);
  });

  test('names the pods and the port of the service to the worker, which opens them for the runs', () => {
    const worker = one(least, 'StatefulSet', 'ry-worker').spec?.template?.spec.containers[0];
    const text = worker?.env?.find(({ name }) => name === 'RUNYARD_KUBERNETES_SERVICE_PODS')?.value ?? '';
    expect(settingsTable.RUNYARD_KUBERNETES_SERVICE_PODS.read(text)).toEqual({ value: text });
    const peer = readServicePods(text);
    expect(peer).toMatchObject({ namespace: 'runyard' });
    expect(selected(least, { matchLabels: 'labels' in peer ? peer.labels : {} })).toEqual(['ry-service']);
    const [service] = one(least, 'Deployment', 'ry-service').spec?.template?.spec.containers ?? [];
    expect(service?.ports).toContainEqual({ name: 'http', containerPort: peer.port });
  });

  test('announces the metrics port of exactly the Service, with the token if there is one', () => {
    const withoutToken = { ...full, metrics: { ...full.metrics, existingSecret: '' } };
    for (const [values, token] of [
      [full, { authorization: { credentials: { name: 'metrics', key: 'token' } } }],
      [withoutToken, {}],
    ] as const) {
      const monitor = one(values, 'ServiceMonitor', 'ry');
      expect(monitor.metadata.labels).toMatchObject({ release: 'p' });
      expect(monitor.spec?.endpoints).toEqual([{ port: 'metrics', ...token }]);
      // Prometheus takes the value of this label of the Service as the job, which the alerts name.
      expect(monitor.spec?.jobLabel).toBe('runyard/job');
      const services = render(values).resources.filter(({ kind }) => kind === 'Service');
      const watched = services.filter(({ metadata }) => selects(monitor.spec?.selector, metadata.labels));
      expect(watched.map(({ metadata }) => metadata.name)).toEqual(['ry']);
      expect(watched[0]?.metadata.labels).toMatchObject({
        'runyard/job': values === full ? 'agents' : expect.any(String),
      });
      expect(watched[0]?.spec?.ports).toContainEqual({ name: 'metrics', port: 9464, targetPort: 'metrics' });
      // The selector of a Service is a map of labels.
      expect(selected(values, { matchLabels: watched[0]?.spec?.selector as Labels })).toEqual(['ry-service']);
      const [service] = one(values, 'Deployment', 'ry-service').spec?.template?.spec.containers ?? [];
      expect(service?.ports).toContainEqual({ name: 'metrics', containerPort: 9464 });
      expect(service?.env?.some(({ name }) => name === 'RUNYARD_METRICS_TOKEN_FILE')).toBe('authorization' in token);
    }
  });

  test('keeps the least number of services while nodes are drained', () => {
    for (const [values, minAvailable] of [
      [least, 1],
      [full, 2],
    ] as const) {
      const { spec } = one(values, 'PodDisruptionBudget', 'ry-service');
      expect(spec?.minAvailable).toBe(minAvailable);
      expect(selected(values, spec?.selector)).toEqual(['ry-service']);
      const worker = one(values, 'PodDisruptionBudget', 'ry-worker');
      expect(worker.spec?.maxUnavailable).toBe(1);
      expect(selected(values, worker.spec?.selector)).toEqual(['ry-worker']);
    }
    // With a single service, its node could never be drained.
    const single = { ...least, service: { replicas: 1 } };
    expect(one(single, 'PodDisruptionBudget', 'ry-service').spec).toMatchObject({ maxUnavailable: 1 });
    expect(one(single, 'PodDisruptionBudget', 'ry-service').spec?.minAvailable).toBeUndefined();
  });
});

describe.skipIf(!hasTools)(`the RuntimeClass of the chart${skipped}`, { tags: 'compiled' }, () => {
  const named = (runtimeClassName: string) => ({ ...least, runs: { runtimeClassName } });

  test('is passed to the worker', () => {
    const worker = one(least, 'StatefulSet', 'ry-worker').spec?.template?.spec.containers[0];
    expect(worker?.env).toContainEqual({ name: 'RUNYARD_KUBERNETES_RUNTIME_CLASS', value: 'gvisor' });
  });

  test.each(['runc', 'crun', 'nvidia', 'nvidia-cdi'])('with the name %s needs unsafe.shareKernelOfNodes', (name) => {
    const refused = helm('template', named(name));
    expect(refused.status).not.toBe(0);
    expect(refused.output).toContain(`the handler ${name}, which shares the kernel of the node`);
    expect(helm('template', { ...named(name), unsafe: { shareKernelOfNodes: true } }).status).toBe(0);
  });

  test('is refused if the cluster says that its handler shares the kernel of the node, whatever its name', async () => {
    const handlers: Readonly<Record<string, string>> = { isolated: 'runc', runc: 'runsc' };
    const api = http.createServer((request, response) => {
      const [, name = ''] = /^\/apis\/node\.k8s\.io\/v1\/runtimeclasses\/(\w+)/.exec(request.url ?? '') ?? [];
      const [kind, isNamespaced] = ['RuntimeClass', false];
      const answers: Readonly<Record<string, object>> = {
        '/version': { major: '1', minor: '34', gitVersion: 'v1.34.2' },
        '/api': { kind: 'APIVersions', versions: ['v1'] },
        '/api/v1': { kind: 'APIResourceList', groupVersion: 'v1', resources: [] },
        '/apis': {
          kind: 'APIGroupList',
          groups: [{ name: 'node.k8s.io', versions: [{ groupVersion: 'node.k8s.io/v1', version: 'v1' }] }],
        },
        '/apis/node.k8s.io/v1': {
          kind: 'APIResourceList',
          groupVersion: 'node.k8s.io/v1',
          resources: [{ name: 'runtimeclasses', namespaced: isNamespaced, kind, verbs: ['get'] }],
        },
      };
      const item = { kind, apiVersion: 'node.k8s.io/v1', metadata: { name }, handler: handlers[name] };
      const answer = name in handlers ? item : answers[new URL(request.url ?? '', 'http://api').pathname];
      const missing = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 };
      response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer ?? missing));
    });
    await once(api.listen(0, '127.0.0.1'), 'listening');
    const file = path.join(folder, 'kubeconfig.json');
    const server = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
    writeFileSync(file, JSON.stringify(kubeconfig({ server }, 'token')));
    try {
      expect(await renderWith(file, named('isolated'))).toContain('the RuntimeClass isolated have the handler runc');
      // The cluster has no classes with the following two names, so the name counts.
      expect(await renderWith(file, named('crun'))).toContain('the handler crun');
      // Then helm looks for the kinds of the chart, which this API server does not have.
      for (const name of ['gvisor', 'runc'])
        expect(await renderWith(file, named(name))).toMatch(/^Error: .*no matches for kind/);
    } finally {
      api.close();
    }
  });
});
