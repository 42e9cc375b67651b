import type { IncomingMessage } from 'node:http';

/**
 * Headers that are not forwarded: hop-by-hop headers (RFC 9110 section 7.6.1), and headers with which a sandbox could pretend to be a proxy
 * or choose a host.
 */
const notForwarded = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'host',
  'expect',
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
]);

/** Returns the headers to forward. A repeated name keeps all its values. Names listed in `Connection` are per hop too. */
export function forwardedHeaders(message: IncomingMessage): Record<string, string[]> {
  const perHop = new Set(
    (message.headers.connection ?? '')
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  );
  const headers: Record<string, string[]> = {};
  for (const [name, values] of Object.entries(message.headersDistinct)) {
    if (values !== undefined && !notForwarded.has(name) && !perHop.has(name)) headers[name] = values;
  }
  return headers;
}

/**
 * Returns the status to forward. A server can send three digits that are not a final status (RFC 9110, 15). For some of these numbers, Node
 * throws. The exception would end this process and all sandboxes that it supervises.
 */
export function forwardedStatus({ statusCode = 0 }: IncomingMessage): number {
  return statusCode >= 200 && statusCode <= 999 ? statusCode : 502;
}

/**
 * Returns the header that delimits the body. The header is explicit because Node sends the body of a GET or DELETE without framing if its
 * length is unknown. The service would read such a body as the next request, on a connection that other sandboxes share. A `Connection`
 * header that names the length must not remove it either (RFC 9110, 7.6.1).
 */
export function bodyFraming(message: IncomingMessage): Record<string, string> {
  const { 'transfer-encoding': encoding, 'content-length': length } = message.headers;
  if (encoding !== undefined) return { 'transfer-encoding': 'chunked' };
  return length === undefined ? {} : { 'content-length': length };
}

/** Returns true if a body follows the headers. */
export function hasBody(message: IncomingMessage): boolean {
  return message.headers['transfer-encoding'] !== undefined || message.headers['content-length'] !== undefined;
}
