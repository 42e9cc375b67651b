import { harmlessLine } from '../../../terminal/harmless.ts';

type Payload = Readonly<Record<string, unknown>>;

/** Returns the hosts that the environment allows and the worker does not. `network` is the member of an event `worker_container_ready`. */
export function refusedHosts(network: unknown): string {
  const hosts = typeof network === 'object' && network !== null ? Reflect.get(network, 'refused_hosts') : undefined;
  return Array.isArray(hosts) ? harmlessLine(hosts.join(', '), 300) : '';
}

/**
 * Returns the text of an event `connection_denied`. The event describes one denied connection or, at the end of the execution, how often a
 * connection was denied in total.
 */
export function deniedText({ host, port, message, total }: Payload): string {
  if (typeof total === 'number') return `${total} times in total`;
  const place = typeof port === 'number' && port > 0 ? `${host}:${port}` : `${host}`;
  return harmlessLine(`${place === '' ? '' : `${place}: `}${message}`, 300);
}
