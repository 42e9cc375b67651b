import { expect, test } from 'vitest';
import { policyOf, readServicePods } from './policy.ts';

const nameServers = {
  to: [
    {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } },
      podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } },
    },
  ],
  ports: [
    { protocol: 'UDP', port: 53 },
    { protocol: 'TCP', port: 53 },
  ],
};

test('the policy for a service in the same cluster allows connections to the pods of the service and to name servers only', () => {
  const peer = readServicePods('runyard/app.kubernetes.io/instance=ry,app.kubernetes.io/component=service:4180');
  expect(policyOf('runs', 'owner', peer)).toMatchObject({ metadata: { name: 'runyard-owner', namespace: 'runs' } });
  expect(policyOf('runs', 'owner', peer).spec).toEqual({
    podSelector: { matchLabels: { 'runyard.dev/owner': 'owner' } },
    // There is no member `ingress`, so nothing can connect to the pods.
    policyTypes: ['Ingress', 'Egress'],
    egress: [
      {
        to: [
          {
            namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'runyard' } },
            podSelector: {
              matchLabels: { 'app.kubernetes.io/instance': 'ry', 'app.kubernetes.io/component': 'service' },
            },
          },
        ],
        ports: [{ protocol: 'TCP', port: 4180 }],
      },
      nameServers,
    ],
  });
});

test.each([true, false])(
  'the policy for a service with addresses allows these addresses; name servers: %s',
  (hasName) => {
    const peer = { addresses: ['192.0.2.7', '2001:db8::7'], port: 443, hasName };
    expect(policyOf('runs', 'owner', peer).spec?.egress).toEqual([
      {
        to: [{ ipBlock: { cidr: '192.0.2.7/32' } }, { ipBlock: { cidr: '2001:db8::7/128' } }],
        ports: [{ protocol: 'TCP', port: 443 }],
      },
      ...(hasName ? [nameServers] : []),
    ]);
  },
);
