import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { answerInTurn } from '@runyard/system/answer-in-turn';
import { loadHttp } from '../builtin-modules.ts';
import { listenOnLoopback } from '../listen-on-loopback.ts';
import { readBody, type ServiceConnection } from '../service/connection.ts';
import { keepMcpSessions } from './kept-session.ts';
import { repairAnswer } from './repair-tools.ts';

/** Gives a harness in a separate process access to MCP servers over HTTP, without the run token. */
export interface McpLoopback {
  /** Returns the address at which the harness reaches a server. `repairsTools`: repairs the server's list of tools. */
  urlOf(gatewayPath: string, options?: { readonly repairsTools: boolean }): string;
  close(): void;
}

const maxBodyBytes = 4 * 1024 * 1024;
const maxListBytes = 16 * 1024 * 1024;
/** A harness has a few connections to each of its MCP servers. */
const maxConnections = 64;
const silenceMs = 610_000;
const upwards = ['content-type', 'accept', 'last-event-id'];

function pick(headers: IncomingMessage['headers'], names: readonly string[]): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers))
    if (typeof value === 'string' && (names.includes(name) || name.startsWith('mcp-'))) picked[name] = value;
  return picked;
}

/**
 * Listens on loopback inside the sandbox and forwards requests to the MCP gateway with the run token. All paths begin with a secret,
 * because other users of the machine can connect to the port if the agent runs without a sandbox.
 */
export async function startMcpLoopback(connection: ServiceConnection): Promise<McpLoopback> {
  const secret = randomBytes(24).toString('base64url');
  const servers: {
    readonly path: string;
    readonly open: ServiceConnection['open'];
    readonly repairsTools: boolean;
  }[] = [];

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, given, index = ''] = (request.url ?? '').split('/');
    const target = given === secret ? servers[Number(index)] : undefined;
    const method = (['GET', 'POST', 'DELETE'] as const).find((each) => each === request.method);
    // Refuse requests from pages in a browser, which have an Origin header.
    if (target === undefined || method === undefined || request.headers.origin !== undefined) {
      response.writeHead(404).end();
      return;
    }
    const disconnect = new AbortController();
    response.once('close', () => disconnect.abort());
    const body = method === 'POST' ? await readRequest(request) : undefined;
    const answered = await target.open({
      method,
      path: target.path,
      headers: pick(request.headers, upwards),
      body,
      idleTimeoutMs: silenceMs,
      lane: 'waits',
      signal: disconnect.signal,
    });
    response.writeHead(answered.statusCode ?? 502, pick(answered.headers, ['content-type', 'retry-after']));
    response.flushHeaders();
    if (target.repairsTools && isToolList(body)) {
      response.end(repairBody((await readBody(answered, maxListBytes)).toString('utf8')));
      return;
    }
    answered.on('error', () => response.destroy());
    answered.pipe(response);
  }

  const server = loadHttp().createServer((request, response) => {
    answer(request, response).catch(() => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end();
    });
  });
  answerInTurn(server);
  server.maxConnections = maxConnections;
  const port = await listenOnLoopback(server);
  return {
    urlOf(path, { repairsTools } = { repairsTools: false }) {
      const index = servers.push({ path, open: keepMcpSessions(connection.open), repairsTools }) - 1;
      return `http://127.0.0.1:${port}/${secret}/${index}`;
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Reads the body of a request; rejects if it is larger than the gateway accepts. */
const readRequest = (request: IncomingMessage): Promise<Buffer> => readBody(request, maxBodyBytes);

function isToolList(body: Buffer | undefined): boolean {
  if (body?.includes('"tools/list"') !== true) return false;
  try {
    return (JSON.parse(body.toString('utf8')) as { method?: unknown } | null)?.method === 'tools/list';
  } catch {
    return false;
  }
}

/** Repairs the tools in the answer to `tools/list`: a JSON message, or a stream of events with one message in each `data` line. */
const repairBody = (text: string): string =>
  text.startsWith('{')
    ? repairText(text)
    : text
        .split('\n')
        .map((line) => line.replace(/^(data: ?)(.*)$/, (_, field: string, json: string) => field + repairText(json)))
        .join('\n');

function repairText(json: string): string {
  try {
    return JSON.stringify(repairAnswer(JSON.parse(json)));
  } catch {
    return json;
  }
}
