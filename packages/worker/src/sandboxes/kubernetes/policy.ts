/** The network policy of a worker's pods. */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { V1NetworkPolicy } from '@kubernetes/client-node';
import { managedByLabel, ownerLabel, policyName } from './names.ts';

type Peers = NonNullable<NonNullable<V1NetworkPolicy['spec']>['egress']>[number];

/** How the network policy names the service: by IP addresses, or by the labels of the service's pods. */
export type ServicePeer =
  | { readonly addresses: readonly string[]; readonly port: number; readonly hasName: boolean }
  | { readonly namespace: string; readonly labels: Readonly<Record<string, string>>; readonly port: number };

/** Reads a setting of the form `namespace/label=value,label=value:port`. */
export function readServicePods(text: string): ServicePeer {
  const slash = text.indexOf('/');
  const colon = text.lastIndexOf(':');
  const labels = text
    .slice(slash + 1, colon)
    .split(',')
    .map((pair) => pair.split('=') as [string, string]);
  return { namespace: text.slice(0, slash), labels: Object.fromEntries(labels), port: Number(text.slice(colon + 1)) };
}

/** Returns the addresses of the service's host. Rejects if the host has no address. */
export async function findService(serviceRoot: string): Promise<ServicePeer> {
  const { hostname, port, protocol } = new URL(serviceRoot);
  const host = hostname.replace(/^\[|\]$/g, '');
  const found = await lookup(host, { all: true }).catch((error: Error) => {
    throw new Error(
      `the host of ${serviceRoot} has no address (${error.message}): correct RUNYARD_KUBERNETES_SERVICE_URL`,
    );
  });
  const addresses = [...new Set(found.map(({ address }) => address))].sort();
  return { addresses, port: Number(port) || (protocol === 'https:' ? 443 : 80), hasName: isIP(host) === 0 };
}

/**
 * Returns the network policy for the pods of runs. Nothing can connect to these pods. They can connect only to the service and, if the
 * URL of the service has a host name, to the name servers of the cluster.
 */
export function policyOf(namespace: string, owner: string, peer: ServicePeer): V1NetworkPolicy {
  const labels = { [managedByLabel]: 'runyard', [ownerLabel]: owner };
  const names: Peers = {
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
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: policyName(owner), namespace, labels },
    spec: {
      podSelector: { matchLabels: { [ownerLabel]: owner } },
      policyTypes: ['Ingress', 'Egress'],
      egress: [
        { to: peersOf(peer), ports: [{ protocol: 'TCP', port: peer.port }] },
        ...('addresses' in peer && !peer.hasName ? [] : [names]),
      ],
    },
  };
}

const peersOf = (peer: ServicePeer): NonNullable<Peers['to']> =>
  'addresses' in peer
    ? peer.addresses.map((address) => ({ ipBlock: { cidr: `${address}/${isIP(address) === 6 ? 128 : 32}` } }))
    : [
        {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': peer.namespace } },
          podSelector: { matchLabels: { ...peer.labels } },
        },
      ];
