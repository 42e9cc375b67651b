import type { IncomingHttpHeaders } from 'node:http';
import type { ByteMask } from '@runyard/system/redaction/mask-bytes';

/** Headers of the sandbox that reach an MCP server, besides the headers of the protocol (`mcp-…`). */
const upwards = ['content-type', 'accept', 'user-agent', 'last-event-id'];
/**
 * Headers of an MCP server that reach the sandbox, besides the headers of the protocol. Other headers could set cookies
 * or ask for credentials.
 */
const downwards = ['content-type', 'cache-control', 'retry-after'];

/** Headers that only the service sets, whatever a configuration contains. */
const own = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'upgrade',
  'expect',
  'te',
  'trailer',
  'keep-alive',
  'proxy-connection',
  'accept-encoding',
]);

function pick(headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers))
    if (typeof value === 'string' && (names.includes(name) || name.startsWith('mcp-'))) picked[name] = value;
  return picked;
}

/**
 * Returns the headers of a request to the server: the allowed headers of the sandbox, and the configured headers. A configured header
 * replaces a header of the sandbox.
 */
export function headersToServer(
  headers: IncomingHttpHeaders,
  configured: Readonly<Record<string, string>>,
): Record<string, string> {
  const sent = { ...pick(headers, upwards), 'accept-encoding': 'identity' };
  for (const [name, value] of Object.entries(configured)) {
    const lower = name.toLowerCase();
    if (!own.has(lower)) Object.assign(sent, { [lower]: value });
  }
  return sent;
}

/** Returns the headers of the server's answer for the sandbox, with their secrets masked. */
export const headersToSandbox = (headers: IncomingHttpHeaders, mask: ByteMask): Record<string, string> =>
  Object.fromEntries(
    Object.entries(pick(headers, downwards)).map(([name, value]) => [
      name,
      mask.whole(Buffer.from(value, 'latin1')).toString('latin1'),
    ]),
  );

/**
 * Names of headers whose values are secrets. Values of other headers, such as a version, are not masked, because an answer may need these
 * words.
 */
const secretNames = /auth|cookie|credential|key|pass|secret|signature|token/i;

/** Returns the secrets in configured headers: whole values, and credentials without their scheme (RFC 9110, section 11.4). */
export function secretsOf(configured: Readonly<Record<string, string>>): string[] {
  return Object.entries(configured)
    .filter(([name]) => secretNames.test(name))
    .flatMap(([, value]) => [value, value.replace(/^[\w-]+ +/, '')]);
}
