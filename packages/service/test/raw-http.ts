/** Test support: HTTP requests that a client library would not send. */
import net, { type Socket } from 'node:net';

/** Connects to the host of a URL. */
export function connectTo(url: string): Socket {
  const { hostname, port } = new URL(url);
  return net.connect(Number(port), hostname);
}

/** Returns the request line and the headers of a request as text. */
export const headOf = (url: string, headers: readonly string[], method = 'POST'): string =>
  [`${method} ${new URL(url).pathname} HTTP/1.1`, 'host: x', ...headers, '', ''].join('\r\n');

/**
 * Sends a request line, headers and `body`, which may be incomplete. When the service has closed the connection, returns the head and
 * the body of the answer.
 */
export async function sendRaw(
  url: string,
  headers: readonly string[],
  body = '',
  method = 'POST',
): Promise<[string, string]> {
  const socket = connectTo(url);
  socket.on('error', () => undefined);
  socket.write(headOf(url, headers, method) + body);
  let text = '';
  for await (const chunk of socket.iterator({ destroyOnReturn: true })) text += String(chunk);
  const [head = '', rest = ''] = text.split('\r\n\r\n');
  return [head, rest];
}
