import type { IncomingHttpHeaders } from 'node:http';

/** Headers of the sandbox that reach an MCP server, besides those of the protocol (`mcp-…`). */
const upwards = ['content-type', 'accept', 'user-agent', 'last-event-id'];
/** Headers of an MCP server that reach the sandbox, besides those of the protocol. Others could set cookies or ask for credentials. */
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

/** Returns the headers of a request to the server: some headers of the sandbox, and the configured ones, which replace them. */
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

/** Returns the headers of the server's answer for the sandbox. */
export const headersToSandbox = (headers: IncomingHttpHeaders): Record<string, string> => pick(headers, downwards);
