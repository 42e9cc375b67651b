import { harmlessLine } from './harmless.ts';

type Payload = Readonly<Record<string, unknown>>;

/** Returns the hosts of the environment that the worker does not allow, from the network of a `worker_container_ready`. */
export function refusedHosts(network: unknown): string {
  const hosts = typeof network === 'object' && network !== null ? Reflect.get(network, 'refused_hosts') : undefined;
  return Array.isArray(hosts) ? harmlessLine(hosts.join(', '), 300) : '';
}

/** Returns the text of a `connection_denied` event: one denied connection, or the total number. */
export function deniedText({ host, port, message, total }: Payload): string {
  if (typeof total === 'number') return `${total} times in total`;
  const place = typeof port === 'number' && port > 0 ? `${host}:${port}` : `${host}`;
  return harmlessLine(`${place === '' ? '' : `${place}: `}${message}`, 300);
}
