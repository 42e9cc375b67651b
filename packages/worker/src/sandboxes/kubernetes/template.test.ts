import { expect, test } from 'vitest';
import { readTemplate } from './template.ts';

test('readTemplate accepts the members that the operator may set', () => {
  const template = readTemplate(`
metadata:
  labels: { team: agents }
spec:
  nodeSelector: { pool: sandboxes }
  tolerations: [{ key: sandboxes, operator: Exists }]
  imagePullSecrets: [{ name: registry }]
  containers:
    - name: agent
      imagePullPolicy: Always
      resources: { requests: { cpu: 2 }, limits: { nvidia.com/gpu: 1 } }
`);
  expect(template).toEqual({
    labels: { team: 'agents' },
    annotations: {},
    spec: {
      nodeSelector: { pool: 'sandboxes' },
      tolerations: [{ key: 'sandboxes', operator: 'Exists' }],
      imagePullSecrets: [{ name: 'registry' }],
    },
    resources: { requests: { cpu: '2' }, limits: { 'nvidia.com/gpu': '1' } },
    imagePullPolicy: 'Always',
  });
});

test.each([
  ['spec: { hostNetwork: true }', 'spec.hostNetwork'],
  ['spec: { serviceAccountName: admin }', 'spec.serviceAccountName'],
  ['spec: { automountServiceAccountToken: true }', 'spec.automountServiceAccountToken'],
  ['spec: { securityContext: { runAsUser: 0 } }', 'spec.securityContext'],
  ['spec: { runtimeClassName: runc }', 'spec.runtimeClassName'],
  ['spec: { volumes: [{ name: host, hostPath: { path: / } }] }', 'spec.volumes'],
  ['spec: { initContainers: [{ name: first }] }', 'spec.initContainers'],
  [
    'spec: { containers: [{ name: agent, securityContext: { privileged: true } }] }',
    'spec.containers[0].securityContext',
  ],
  ['spec: { containers: [{ name: agent, image: other }] }', 'spec.containers[0].image'],
  ['spec: { containers: [{ name: other }] }', 'spec.containers'],
  ['spec: { containers: [{ name: agent, resources: { limits: { memory: 64Gi } } }] }', 'resources.limits.memory'],
  ['metadata: { labels: { runyard.dev/owner: other } }', 'metadata.labels.runyard.dev/owner'],
  ['metadata: { name: mine }', 'metadata.name'],
  ['spec: [1]', 'spec'],
  ['just text', 'template'],
])('readTemplate refuses %s', (text, member) => {
  expect(() => readTemplate(text)).toThrow(member);
});
