/** Explains answers of servers that do not speak Streamable HTTP. */
import type { IncomingMessage } from 'node:http';
import { type McpUpstreamOptions, sendToMcpServer } from './mcp-upstream.ts';

export interface NoMcpOptions {
  readonly url: string;
  /** Headers of the request to the server. */
  readonly headers: Readonly<Record<string, string>>;
  readonly method: string;
  readonly upstream: McpUpstreamOptions;
  readonly signal: AbortSignal;
}

const probeMs = 5_000;
const maxProbeBytes = 4_096;

/**
 * Returns why an answer is not one of Streamable HTTP: the server speaks the older transport HTTP+SSE, or the answer is a web page.
 * Returns undefined if the client can read the answer. A 404 or 405 in a session is not examined: a server that has lost the session also
 * answers 404.
 */
export async function explainNoMcp(response: IncomingMessage, options: NoMcpOptions): Promise<string | undefined> {
  const { statusCode: status = 502 } = response;
  if (options.method !== 'POST') return undefined;
  const hasSession = options.headers['mcp-session-id'] !== undefined;
  if (!hasSession && (status === 404 || status === 405) && (await isOldServer(options)))
    return "it speaks HTTP+SSE, the transport of MCP before 2025-03-26, and Runyard speaks its successor, Streamable HTTP: use the url of the server's endpoint for Streamable HTTP, often /mcp in place of /sse, or update the server";
  if (!/^text\/html\b/i.test(response.headers['content-type'] ?? '')) return undefined;
  return `it answered with status ${status} and a web page, not with MCP: check its url`;
}

/** Returns whether the address answers GET with a stream whose first event is `endpoint` (MCP 2025-03-26, backwards compatibility). */
async function isOldServer({ url, headers, upstream, signal }: NoMcpOptions): Promise<boolean> {
  const { 'content-type': _, ...others } = headers;
  const limit = AbortSignal.any([signal, AbortSignal.timeout(probeMs)]);
  const request = { url, method: 'GET', headers: { ...others, accept: 'text/event-stream' } };
  const answer = await sendToMcpServer(request, { ...upstream, answerMs: probeMs }, limit);
  if (answer.kind === 'failed') return false;
  const { response } = answer;
  let text = '';
  try {
    if (response.statusCode !== 200 || !/^text\/event-stream\b/i.test(response.headers['content-type'] ?? ''))
      return false;
    for await (const chunk of response) {
      text += String(chunk);
      if (/^event: *endpoint\r?$/m.test(text) || text.length > maxProbeBytes) break;
    }
  } catch {
    return false;
  } finally {
    response.destroy();
  }
  return /^event: *endpoint\r?$/m.test(text);
}
