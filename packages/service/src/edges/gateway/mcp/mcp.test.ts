import http, { type IncomingHttpHeaders, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, describe, expect, test } from 'vitest';
import { makeBodyBudget } from '../../../platform/bodies/body-budget.ts';
import type { ServerOfExecution } from '../../../runs/runs/read/mcp-server.ts';
import type { RunMcpServer } from '../../../team/mcp/of-run.ts';
import { type McpGatewayLimits, registerMcpGateway } from './mcp.ts';

const token = 'run-token-0123456789abcdef';
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function listen(answer: RequestListener): Promise<string> {
  const server = http.createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(async () => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Seen {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A server that notes each request, then answers it. */
async function listenAndNote(answer: RequestListener): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const url = await listen(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    seen.push({ method: request.method, url: request.url, headers: request.headers, body });
    answer(request, response);
  });
  return { url, seen };
}

const somebody = { kind: 'user', uid: 'a' } as const;
const holder = {
  runId: 'run',
  executionId: 'execution',
  teamId: 'team',
  modelId: 'runbook',
  ancestorIds: [],
  creator: somebody,
  executor: somebody,
  environmentId: null,
  automationUid: null,
  factoryUid: null,
};

async function start(
  server: ServerOfExecution | null,
  more: { limits?: Partial<McpGatewayLimits>; networks?: readonly string[] } = {},
) {
  const lines: string[] = [];
  const write = (fields: object, message: string) => void lines.push(JSON.stringify([message, fields]));
  const app: FastifyInstance = Fastify({ forceCloseConnections: true });
  await registerMcpGateway(app, {
    allowedNetworks: more.networks ?? ['127.0.0.0/8'],
    authenticateRunToken: async (given) => (given === token ? holder : null),
    serverOf: async (_, name) => (name === 'tickets 1' ? server : null),
    resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    bodies: makeBodyBudget(),
    log: { info: write, warn: write, error: write },
    ...(more.limits ? { limits: more.limits } : {}),
    drainMs: 100,
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  closing.push(() => app.close());
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/api/v1/gateway/mcp/`;
  const send = (init: RequestInit = {}, name = 'tickets%201', bearer = token) =>
    fetch(url + name, {
      method: 'POST',
      body: '{"jsonrpc":"2.0"}',
      ...init,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json', ...init.headers },
    });
  return { send, log: () => lines.join('\n') };
}

const at = (url: string, headers: Record<string, string> = {}, secrets: string[] = []): RunMcpServer => ({
  kind: 'url',
  url,
  headers,
  secrets,
});
const messageOf = async (answer: Response) => ((await answer.json()) as { error: { message: string } }).error.message;

test('the MCP gateway adds the configured headers, and forwards the headers and bodies of the protocol in both directions', async () => {
  const { url, seen } = await listenAndNote((_, response) =>
    response
      .writeHead(200, { 'content-type': 'text/event-stream', 'mcp-session-id': 's1', 'set-cookie': 'a=b' })
      .end('data: {}\n\n'),
  );
  const { send, log } = await start(at(`${url}/mcp?a=1`, { Authorization: 'Bearer of-the-team', Host: 'evil' }));
  const headers = { 'mcp-session-id': 's0', 'mcp-protocol-version': '2025-06-18', cookie: 'x', 'x-forwarded-for': '1' };
  const answer = await send({ headers });
  expect([answer.status, await answer.text()]).toEqual([200, 'data: {}\n\n']);
  expect(answer.headers.get('mcp-session-id')).toBe('s1');
  expect(answer.headers.get('set-cookie')).toBeNull();
  expect(seen[0]).toMatchObject({
    method: 'POST',
    url: '/mcp?a=1',
    body: '{"jsonrpc":"2.0"}',
    headers: {
      authorization: 'Bearer of-the-team',
      'mcp-session-id': 's0',
      host: expect.stringContaining('127.0.0.1'),
    },
  });
  expect(JSON.stringify(seen)).not.toMatch(/run-token|cookie|forwarded/);
  expect(log()).not.toMatch(/of-the-team|run-token/);
  for (const method of ['GET', 'DELETE']) await (await send({ method, body: null })).text();
  expect(seen.map((each) => each.method)).toEqual(['POST', 'GET', 'DELETE']);
});

test('the MCP gateway masks secrets of the configured headers in an answer that arrives byte by byte, and changes no other words', async () => {
  const { url } = await listenAndNote((request, response) => {
    const { authorization = '', 'x-version': version } = request.headers;
    const encoded = Buffer.from(`a${authorization}`).toString('base64');
    response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': `of ${authorization}` });
    const text = JSON.stringify({ authorization, encoded, version });
    for (const character of text) response.write(character);
    response.end();
  });
  const { send } = await start(at(url, { Authorization: 'Bearer of-the-team-0123', 'X-Version': '2025-06-18' }));
  const answer = await send();
  const { authorization, encoded, version } = (await answer.json()) as Record<string, string>;
  expect(authorization).toMatch(/^\*+$/);
  expect(Buffer.from(encoded ?? '', 'base64').toString()).not.toContain('of-the-team');
  expect(version).toBe('2025-06-18');
  expect(answer.headers.get('mcp-session-id')).not.toContain('of-the-team');
});

test('the MCP gateway masks a secret of the run in an answer, whatever the name of the configured header with the secret', async () => {
  const { url } = await listenAndNote(({ headers }, response) => response.end(JSON.stringify(headers)));
  const { send } = await start(at(url, { 'x-site': 'site-of-acme-0123' }, ['of-acme-0123']));
  expect(((await (await send()).json()) as IncomingHttpHeaders)['x-site']).toBe('site-************');
});

test('the MCP gateway forwards a piece of a stream before the answer has ended', async () => {
  const released = Promise.withResolvers<void>();
  const url = await listen(async (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    await released.promise;
    response.end('data: 2\n\n');
  });
  const { send } = await start(at(url));
  const reader = (await send()).body?.getReader();
  const first = await reader?.read();
  expect(new TextDecoder().decode(first?.value)).toBe('data: 1\n\n');
  released.resolve();
  expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('data: 2\n\n');
});

describe('the MCP gateway refuses', () => {
  test('a token that does not belong to a working run', async () => {
    const { send } = await start(at('http://127.0.0.1:9'));
    expect((await send({}, 'tickets%201', 'ry_key')).status).toBe(401);
  });

  test.each([
    ['a server that the run does not have', at('http://127.0.0.1:9'), 'other'],
    ['a program of the sandbox', { kind: 'command', command: 'x', args: [], env: {} } as const, 'tickets%201'],
    ['a server that was deleted', { kind: 'gone', id: 'x' } as const, 'tickets%201'],
  ])('%s', async (_, server, name) => {
    const { send } = await start(server);
    expect((await send({}, name)).status).toBe(404);
  });

  test.each([
    ['a private address', 'http://10.0.0.1/', /10\.0\.0\.1 is not public/],
    ['the metadata service of a cloud', 'http://169.254.169.254/latest', /is not public/],
    ['a name that leads to a private address', 'https://internal.example/', /neither public nor in/],
    ['a port of another protocol', 'https://example.com:25/', /must have port/],
  ])('%s', async (_, url, message) => {
    const { send } = await start(at(url, { authorization: 'of-the-team' }), { networks: ['192.168.7.7/32'] });
    const answer = await send();
    expect(answer.status).toBe(502);
    expect(await messageOf(answer)).toMatch(message);
  });

  test('a redirect to another origin, and follows a redirect to the same origin', async () => {
    const elsewhere = await listenAndNote((_, response) => response.end('{}'));
    const { url, seen } = await listenAndNote((request, response) => {
      if (request.url === '/mcp') response.writeHead(307, { location: '/mcp/' }).end();
      else if (request.url === '/away') response.writeHead(307, { location: `${elsewhere.url}/` }).end();
      else if (request.url === '/loop') response.writeHead(308, { location: '/loop' }).end();
      else response.end('{"ok":1}');
    });
    const headers = { authorization: 'of-the-team' };
    const good = await (await start(at(`${url}/mcp`, headers))).send();
    expect(await good.json()).toEqual({ ok: 1 });
    expect(seen[1]).toMatchObject({ method: 'POST', body: '{"jsonrpc":"2.0"}' });
    for (const path of ['/away', '/loop']) {
      const answer = await (await start(at(url + path, headers))).send();
      expect(await messageOf(answer)).toContain('redirects to an address that Runyard does not follow');
    }
    expect(elsewhere.seen).toEqual([]);
  });

  test('an answer that asks for credentials, because only the service has them', async () => {
    const { url } = await listenAndNote((_, response) =>
      response.writeHead(401, { 'www-authenticate': 'Bearer resource_metadata="http://evil"' }).end(),
    );
    const answer = await (await start(at(url))).send();
    expect(answer.status).toBe(502);
    expect(answer.headers.get('www-authenticate')).toBeNull();
  });

  test('a server whose headers name a secret that the run may not use or that was deleted', async () => {
    const answer = await (await start({ kind: 'unusable', message: 'the secret X in its headers is gone' })).send();
    expect([answer.status, await messageOf(answer)]).toEqual([502, expect.stringContaining('the secret X')]);
  });

  test('a web page in place of an answer, and does not repeat the text of the page', async () => {
    const { url } = await listenAndNote((_, response) =>
      response.writeHead(404, { 'content-type': 'text/html' }).end('<pre>Cannot POST /mcp</pre>'),
    );
    const answer = await (await start(at(url))).send();
    expect([answer.status, await messageOf(answer)]).toEqual([
      502,
      'the MCP server cannot be used: it answered with status 404 and a web page, not with MCP: check its url',
    ]);
  });

  test('a compressed answer, because its decompressed size has no limit', async () => {
    const { url } = await listenAndNote((_, response) => response.setHeader('content-encoding', 'gzip').end('x'));
    expect(await messageOf(await (await start(at(url))).send())).toContain('compressed');
  });
});

describe('the MCP gateway limits', () => {
  test('the size of a request', async () => {
    const { url, seen } = await listenAndNote((_, response) => response.end());
    const { send } = await start(at(url), { limits: { maxBodyBytes: 1_000 } });
    expect((await send({ body: 'x'.repeat(1_001) })).status).toBe(413);
    expect(seen).toEqual([]);
  });

  test('the size of an answer that never ends', async () => {
    const url = await listen((_, response) => {
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(10_000)));
      };
      response.on('drain', more);
      more();
    });
    const { send } = await start(at(url), { limits: { maxAnswerBytes: 100_000 } });
    await expect((await send()).text()).rejects.toThrow();
  });

  test('the silence of a server before its answer and in the middle of its answer', async () => {
    const silent = await listen(() => {});
    const limits = { silenceMs: 1_000 };
    expect(await messageOf(await (await start(at(silent), { limits })).send())).toContain('did not answer in time');
    const stops = await listen((_, response) => response.writeHead(200).write('{'));
    await expect((await (await start(at(stops), { limits })).send()).text()).rejects.toThrow();
  });

  test('the number of concurrent requests of a run', async () => {
    const url = await listen((_, response) => response.writeHead(200).write('data: 1\n\n'));
    const { send } = await start(at(url), { limits: { maxInFlight: 2 } });
    const [first] = await Promise.all([send(), send()]);
    const refused = await send();
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '2']);
    await first?.body?.cancel();
    await expect.poll(async () => (await send()).status).toBe(200);
  });

  test('the number of concurrent requests of a run, including requests whose body has not arrived yet', async () => {
    const { url, seen } = await listenAndNote((_, response) => response.end('{}'));
    const { send } = await start(at(url), { limits: { maxInFlight: 2 } });
    const slow = [1, 2].map(() => {
      const body = new TransformStream<Uint8Array, Uint8Array>();
      const writer = body.writable.getWriter();
      void writer.write(Buffer.from('{'));
      return { writer, answer: send({ body: body.readable, duplex: 'half' }) };
    });
    await expect.poll(async () => (await send()).status).toBe(429);
    for (const { writer, answer } of slow) {
      await writer.write(Buffer.from('}'));
      await writer.close();
      expect((await answer).status).toBe(200);
    }
    expect(seen.filter(({ body }) => body === '{}')).toHaveLength(2);
    await expect.poll(async () => (await send()).status).toBe(200);
  });
});
