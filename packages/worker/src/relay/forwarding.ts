import type { IncomingMessage } from 'node:http';

/**
 * Headers that are not forwarded. These are hop-by-hop headers (RFC 9110 section 7.6.1), and headers with which a sandbox could
 * pretend to be a proxy or choose another host.
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

/**
 * Returns the headers to forward. If a header occurs several times, all values are forwarded. Headers that are listed in `Connection` are
 * hop-by-hop too and are not forwarded.
 */
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
 * Returns the status to forward. If a server sends a number that is not a final status (RFC 9110, 15), returns 502. Node throws if
 * some of these numbers are forwarded, and the exception would end this process and all sandboxes that the process supervises.
 */
export function forwardedStatus({ statusCode = 0 }: IncomingMessage): number {
  return statusCode >= 200 && statusCode <= 999 ? statusCode : 502;
}

/**
 * Returns the header that defines where the body ends. The caller sets this header explicitly, because Node adds no such header to a GET or
 * DELETE request with a body of unknown length. The service would then read the body as the next request, on a connection that other
 * sandboxes share. For the same reason, `Content-Length` is forwarded even if `Connection` lists it as hop-by-hop (RFC 9110, 7.6.1).
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
