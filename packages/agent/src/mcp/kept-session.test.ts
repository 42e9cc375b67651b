import { randomUUID } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterEach, expect, test } from 'vitest';
import { setupSteps } from '../reporting/setup-steps.ts';
import { connectToService } from '../service/connection.ts';
import { connectServer } from './connect-server.ts';
import { type McpLoopback, startMcpLoopback } from './loopback.ts';
import { runMcp } from './servers.ts';

const token = 'ryr_token-of-the-run';
let server: http.Server | undefined;
let loopback: McpLoopback | undefined;
afterEach(() => {
  loopback?.close();
  loopback = undefined;
  server?.close();
  server?.closeAllConnections();
});

/**
 * Starts an MCP server with sessions (Streamable HTTP of 2025-06-18), in place of the gateway and the server behind it. `forget`
 * removes all sessions, as a restart of the server does. If `refuses` is set, the server opens no further session.
 */
async function startServer() {
  const sessions = new Map<string, { initialized: boolean; calls: number }>();
  const tools: object[] = [{ name: 'ping', inputSchema: { type: 'object' } }];
  const state = { tools, opened: 0, refuses: false, forget: () => sessions.clear(), openSessions: () => sessions.size };
  server = http.createServer(async (request, response) => {
    let raw = '';
    for await (const part of request) raw += String(part);
    const id = String(request.headers['mcp-session-id'] ?? '');
    const json = (status: number, body: unknown, headers: Record<string, string> = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
    if (request.method === 'DELETE') return json(sessions.delete(id) ? 200 : 404, {});
    if (request.method !== 'POST') return json(405, {});
    const message = JSON.parse(raw) as { id?: number; method: string; params?: { name?: string } };
    const answer = (result: unknown, headers = {}) => json(200, { jsonrpc: '2.0', id: message.id, result }, headers);
    if (message.method === 'initialize') {
      if (state.refuses) return json(503, {});
      state.opened += 1;
      const fresh = randomUUID();
      sessions.set(fresh, { initialized: false, calls: 0 });
      const result = {
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 't', version: '1' },
      };
      return answer(result, { 'mcp-session-id': fresh });
    }
    const session = sessions.get(id);
    if (session === undefined)
      return json(404, {
        jsonrpc: '2.0',
        id: message.id ?? null,
        error: { code: -32_001, message: 'Session not found' },
      });
    if (message.method === 'notifications/initialized') session.initialized = true;
    if (message.id === undefined) return response.writeHead(202).end();
    if (!session.initialized) return json(400, { error: { code: -32_000, message: 'not initialized' } });
    if (message.method === 'tools/list') return answer({ tools: state.tools });
    session.calls += 1;
    return answer({ content: [{ type: 'text', text: `pong ${session.calls}` }] });
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const serverRoot = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { state, connection: connectToService({ serverRoot, token }) };
}

const never = new AbortController().signal;

/** Returns the tool `ping`, as the harness oz has it, and as the client of another harness has it behind the loopback. */
async function pingOf(client: 'oz' | 'a harness') {
  const { state, connection } = await startServer();
  if (client === 'a harness') {
    loopback = await startMcpLoopback(connection);
    const transport = new StreamableHTTPClientTransport(new URL(loopback.urlOf('/mcp')));
    const { tools } = await connectServer('t', transport, { signal: never, timeoutMs: 20_000 });
    return { state, ping: async () => (await tools[0]?.call({}, never))?.text ?? '' };
  }
  const mcp = runMcp({
    connection,
    workspace: '/',
    env: {},
    network: 'none',
    startTimeoutMs: 20_000,
    agentProgram: [''],
  });
  await mcp.start([{ name: 't', gateway_path: '/mcp' }], { use: 'agent', step: setupSteps(() => {}), signal: never });
  return { state, ping: async () => (await mcp.tools[0]?.call({}, never))?.text ?? '' };
}

test.each(['oz', 'a harness'] as const)('a session that the server forgot is opened again for %s', async (client) => {
  const { state, ping } = await pingOf(client);
  expect(await ping()).toBe('pong 1');
  state.forget();
  expect(await ping()).toBe('pong 1');
  expect(await ping()).toBe('pong 2');
  expect(state.opened).toBe(2);
});

test('calls in parallel share one new session', async () => {
  const { state, ping } = await pingOf('oz');
  await ping();
  state.forget();
  const answers = await Promise.all(Array.from({ length: 8 }, ping));
  expect(answers.every((text) => text.startsWith('pong '))).toBe(true);
  expect([state.opened, state.openSessions()]).toEqual([2, 1]);
});

test('a call fails with the answer of the server if the server opens no new session', async () => {
  const { state, ping } = await pingOf('oz');
  await ping();
  state.forget();
  state.refuses = true;
  expect(await ping()).toMatch(/HTTP status 404.*Session not found/);
  state.refuses = false;
  expect(await ping()).toBe('pong 1');
});

test('the loopback repairs the list of tools of an odd server for a strict client', async () => {
  const { state, connection } = await startServer();
  state.tools = [{ name: 'untyped', inputSchema: {} }, { name: 'ping', inputSchema: { type: 'object' } }, {}];
  loopback = await startMcpLoopback(connection);
  const client = new Client({ name: 'strict', version: '1' });
  const listFrom = async (url: string) => {
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    const names = (await client.listTools()).tools.map(({ name }) => name);
    await client.close();
    return names;
  };
  await expect(listFrom(loopback.urlOf('/mcp'))).rejects.toThrow();
  await client.close();
  expect(await listFrom(loopback.urlOf('/mcp', { repairsTools: true }))).toEqual(['untyped', 'ping']);
});
