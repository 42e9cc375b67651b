/**
 * Calls each function of service and worker that connects to another machine, behind a company's proxy: all connections go through it. The
 * names of the servers are known only to the proxy, and each connection of this process is counted.
 */
import { once } from 'node:events';
import { glob, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import tls from 'node:tls';
import { makeAddressRules } from '@runyard/system/address-rules';
import { systemNames } from '@runyard/system/names/resolver';
import { useProxy } from '@runyard/system/outgoing/outgoing';
import { webSocketAgent } from '@runyard/system/outgoing/tunnel';
import { trustCaFile } from '@runyard/system/trust-authorities';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { sendPlain } from '../packages/client/src/send-plain.ts';
import { openCodeHost } from '../packages/service/src/edges/gateway/git/git-upstream.ts';
import { transfer } from '../packages/service/src/edges/gateway/git/lfs-host.ts';
import { sendToMcpServer } from '../packages/service/src/edges/gateway/mcp/mcp-upstream.ts';
import { probeProvider } from '../packages/service/src/edges/gateway/models/ask-provider.ts';
import { openUpstreams } from '../packages/service/src/edges/gateway/models/upstream.ts';
import { openLogs } from '../packages/service/src/platform/metrics/open-logs.ts';
import { openS3Blobs } from '../packages/service/src/platform/store/blobs/s3-blobs.ts';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { send } from '../packages/service/src/runs/subscriptions/send.ts';
import { openSignOn } from '../packages/service/src/team/access/sign-on/sign-on.ts';
import { askCodeHost } from '../packages/service/src/team/code-hosts/ask.ts';
import { askClassifier } from '../packages/service/src/team/content-policy/classifier.ts';
import type { ClassifierConfig } from '../packages/service/src/team/content-policy/policy-file.ts';
import { fetchLocalModels } from '../packages/service/src/team/models/local-models.ts';
import { probeEndpoint } from '../packages/service/src/team/models/probe-endpoint.ts';
import { askAboutHosts } from '../packages/worker/src/egress/asked-hosts.ts';
import { dial } from '../packages/worker/src/egress/dial.ts';
import { startForwardProxy } from './fakes/forward-proxy.ts';
import { closeAtEnd } from './support/close-at-end.ts';

/** `host:port` of each connection of this process. */
let connections: string[] = [];
const ownAuthorities = tls.getCACertificates('default');
const connect = net.Socket.prototype.connect;
/** Variables that libraries read themselves. */
const variables = {
  ...{ AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'eu-west-1' },
  AWS_ENDPOINT_URL_S3: 'https://bucket.company.example',
  OTEL_LOGS_EXPORTER: 'otlp',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector.company.example',
};

const answers: Readonly<Record<string, unknown>> = {
  '/v1/models': { data: [{ id: 'small' }] },
  '/policy': { allowed: true },
  '/.well-known/openid-configuration': {
    issuer: 'https://id.company.example',
    authorization_endpoint: 'https://id.company.example/auth',
    token_endpoint: 'https://id.company.example/token',
  },
  '/api/v1/harness-support/connections': { decision: 'allowed' },
};

const server: Server = closeAtEnd(
  createServer((request, response) => {
    request.resume();
    const answer = JSON.stringify(answers[request.url?.split('?')[0] ?? ''] ?? {});
    response.writeHead(200, { 'content-type': 'application/json', etag: '"1"' }).end(answer);
  }),
);
const sockets = new WebSocketServer({ server });
sockets.on('connection', (socket) => socket.send('welcome'));
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const port = (server.address() as AddressInfo).port;
const names = ['models', 'git', 'mcp', 'hooks', 'policy', 'bucket', 'id', 'service', 'allowed', 'collector'];
const proxy = await startForwardProxy(
  Object.fromEntries(names.flatMap((name) => [443, 80, 8080].map((each) => [`${name}.company.example:${each}`, port]))),
);
Object.assign(process.env, variables);
trustCaFile(proxy.caFile);
useProxy({ HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url, NO_PROXY: 'direct.example,10.0.0.0/8' });
net.Socket.prototype.connect = function counted(this: net.Socket, ...given: unknown[]) {
  const [{ host = '', port = '' }] = ([given[0]].flat() as [{ host?: string; port?: number | string }]) ?? [{}];
  connections.push(`${host}:${port}`);
  return (connect as (...all: unknown[]) => net.Socket).apply(this, given);
} as typeof connect;
afterAll(async () => {
  net.Socket.prototype.connect = connect;
  useProxy({});
  tls.setDefaultCACertificates(ownAuthorities);
  for (const name of Object.keys(variables)) delete process.env[name];
  await proxy.close();
  server.closeAllConnections();
});
beforeEach(() => {
  connections = [];
  proxy.requests.length = 0;
});

const signal = AbortSignal.timeout(120_000);
const rules = makeAddressRules([]);
const { resolve } = systemNames;
const gitBase = new URL('https://git.company.example/o/r.git');
const question = { method: 'GET', headers: {}, signal, maxBytes: 1000 } as const;
const model = { baseUrl: 'https://models.company.example/v1', key: 'k' };

async function sendToModel(url: string) {
  const upstreams = openUpstreams();
  const parts = [Buffer.from('{}')];
  const headers = { 'content-length': '2' };
  try {
    const sent = await upstreams.send({ url: new URL(url), method: 'POST', headers, body: { parts } }, signal);
    if (sent.kind === 'answer') sent.response.resume();
    return sent.kind === 'answer' ? sent.response.statusCode : sent.message;
  } finally {
    upstreams.close();
  }
}

async function openWebSocket(url: string): Promise<string> {
  const socket = new WebSocket(url, webSocketAgent(new URL(url)));
  const [data] = (await once(socket, 'message')) as [Buffer];
  socket.terminate();
  return String(data);
}

async function fetchRefs() {
  const host = openCodeHost();
  const repository = { owner: 'o', repo: 'r' };
  const wanted = { repository, service: 'git-upload-pack', step: 'refs' } as const;
  const sent = { base: gitBase, wanted, headers: {}, body: Readable.from([]), limit: 1000, signal };
  const answer = await host.send(sent);
  if (answer.kind === 'answer') answer.response.resume();
  host.close();
  return answer.kind;
}

async function storeBlob() {
  const options = { encryption: undefined, presigns: false, log: silentLog };
  const blobs = await openS3Blobs({ kind: 's3', bucket: 'b', prefix: '' }, options);
  return (await blobs.put('a/b', Readable.from([Buffer.from('x')]), { maxBytes: 10 })).outcome;
}

async function dialled(host: string, to: number, form: 'tunnel' | 'request') {
  const target = { kind: net.isIP(host) ? 'address' : 'name', host } as const;
  const outcome = await dial(target, to, form, { resolve, addresses: rules }, signal);
  if (outcome.kind !== 'connected') return outcome;
  outcome.socket.destroy();
  return outcome.proxy === undefined ? 'connected' : 'connected to the proxy';
}

async function signOn(): Promise<string | null> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-sign-on-'));
  const file = path.join(folder, 'sign-on.json');
  const provider = { id: 'acme', name: 'Acme', issuer: 'https://id.company.example', client_id: 'runyard' };
  await writeFile(file, JSON.stringify({ providers: [provider] }), { mode: 0o600 });
  const opened = await openSignOn(file, { warn: () => {} });
  await rm(folder, { recursive: true });
  if (!opened.ok) return opened.problems.join();
  return (await opened.signOn.providers[0]?.check()) ?? null;
}

async function sendLog(): Promise<void> {
  const logs = await openLogs(process.env, { warn: () => {} }, () => undefined);
  logs?.write(JSON.stringify({ level: 30, time: Date.now(), msg: 'hello' }));
  await logs?.close(60_000);
}

async function transferFile() {
  const sent = { method: 'GET', action: { href: 'https://bucket.company.example/o' }, signal } as const;
  const answer = await transfer({ allowedNetworks: [], resolve }, { base: gitBase, credential: undefined }, sent);
  return answer.resume().statusCode;
}

const deliver = (url: string) => send({ url, body: '{}', headers: {} }, { rules, resolve, timeoutMs: 60_000, signal });

const askMcpServer = (url: string) =>
  sendToMcpServer(
    { url, method: 'POST', headers: {}, body: Buffer.from('{}') },
    { rules, allowsPrivate: false, resolve, answerMs: 60_000, connectMs: 60_000 },
    signal,
  );

const askService = askAboutHosts({
  hosts: ['a.example'],
  serviceRoot: 'https://service.company.example',
  runToken: 't',
});

interface Case {
  readonly what: string;
  readonly work: () => Promise<unknown>;
  readonly result: unknown;
  /** The request that the proxy gets: the name of a server with TLS, or a request line. */
  readonly asked: string;
}

const cases: readonly Case[] = [
  {
    what: 'a request to a model',
    work: () => sendToModel('https://models.company.example/x'),
    result: 200,
    asked: 'models',
  },
  {
    what: 'a request to a model without TLS',
    work: () => sendToModel('http://models.company.example/x'),
    result: 200,
    asked: 'POST http://models.company.example/x',
  },
  {
    what: 'the list of models',
    work: () => fetchLocalModels(model, 60_000),
    result: { ok: true, ids: ['small'] },
    asked: 'models',
  },
  {
    what: 'the probe of a model',
    work: () => probeEndpoint(model, 'small', 60_000),
    result: { kind: 'probed' },
    asked: 'models',
  },
  { what: 'the probe of a provider', work: () => probeProvider('openai', model), result: true, asked: 'models' },
  { what: 'git', work: fetchRefs, result: 'answer', asked: 'git' },
  {
    what: 'a request to the API of a code host',
    work: () => askCodeHost({ ...question, url: gitBase }),
    result: { status: 200 },
    asked: 'git',
  },
  { what: 'a file of Git LFS', work: transferFile, result: 200, asked: 'bucket' },
  {
    what: 'an event delivery',
    work: () => deliver('https://hooks.company.example/x'),
    result: { kind: 'answered', status: 200 },
    asked: 'hooks',
  },
  {
    what: 'a request to an MCP server',
    work: () => askMcpServer('https://mcp.company.example/'),
    result: { kind: 'answer' },
    asked: 'mcp',
  },
  {
    what: 'a request to the content policy',
    work: () =>
      askClassifier({ url: 'https://policy.company.example/policy', timeout_seconds: 60 } as ClassifierConfig, 'k', []),
    result: { kind: 'allowed' },
    asked: 'policy',
  },
  { what: 'a blob for the bucket', work: storeBlob, result: 'stored', asked: 'bucket' },
  { what: 'the log for a collector', work: sendLog, result: undefined, asked: 'collector' },
  { what: 'a request to an identity provider', work: signOn, result: null, asked: 'id' },
  {
    what: 'a request of a command',
    work: async () => (await sendPlain('https://service.company.example/x', question, () => {})).status,
    result: 200,
    asked: 'service',
  },
  {
    what: 'the connection of a worker',
    work: () => openWebSocket('wss://service.company.example/ws'),
    result: 'welcome',
    asked: 'service',
  },
  {
    what: 'the connection of a worker without TLS',
    work: () => openWebSocket('ws://service.company.example:8080/ws'),
    result: 'welcome',
    asked: 'CONNECT service.company.example:8080',
  },
  {
    what: 'the question of a worker about a host',
    work: () => askService({ kind: 'name', host: 'a.example' }, 443, signal),
    result: undefined,
    asked: 'service',
  },
  {
    what: 'a tunnel of a sandbox',
    work: () => dialled('allowed.company.example', 443, 'tunnel'),
    result: 'connected',
    asked: 'allowed',
  },
];

test.each(cases)('$what goes through the proxy', async ({ work, result, asked }) => {
  const found = await work();
  if (typeof result === 'object' && result !== null) expect(found).toMatchObject(result);
  else expect(found).toBe(result);
  expect(new Set(connections)).toEqual(new Set([`127.0.0.1:${proxy.port}`]));
  const line = asked.includes(' ') ? asked : `CONNECT ${asked}.company.example:443`;
  await expect.poll(() => new Set(proxy.requests)).toEqual(new Set([line]));
});

test('a plain request of a sandbox leads to the proxy', async () => {
  expect(await dialled('allowed.company.example', 80, 'request')).toBe('connected to the proxy');
  expect(connections).toEqual([`127.0.0.1:${proxy.port}`]);
});

test('destinations of this machine and its network are refused as without a proxy, and the proxy is not asked', async () => {
  const refused = [
    'https://127.0.0.1/x',
    'https://10.0.0.1/x',
    'https://192.168.0.1/x',
    'https://169.254.169.254/x',
    'https://[::1]/x',
    'https://localhost/x',
    'https://localhost./x',
    'https://a.localhost/x',
  ];
  for (const url of refused) {
    expect(await deliver(url), url).toMatchObject({ kind: 'failed' });
    expect(await askMcpServer(url), url).toMatchObject({ kind: 'failed' });
  }
  for (const host of ['127.0.0.1', '10.0.0.1', '192.168.0.1', '::1'])
    expect(await dialled(host, 443, 'tunnel'), host).toEqual({ kind: 'denied', reason: 'private_address' });
  expect([connections, proxy.requests]).toEqual([[], []]);
});

test('a name that this machine resolves to a private address is refused, and so is a name of NO_PROXY that does not exist', async () => {
  const inside = { rules, resolve: async () => [{ address: '10.1.2.3', family: 4 }], timeoutMs: 60_000, signal };
  const request = { url: 'https://hooks.company.example/x', body: '{}', headers: {} };
  expect(await send(request, inside)).toMatchObject({ error: expect.stringContaining('neither public nor') });
  expect(await deliver('https://a.direct.example/x')).toMatchObject({ kind: 'failed' });
  expect(await deliver('http://hooks.company.example/x')).toMatchObject({
    error: 'https is needed for a public address',
  });
  expect(proxy.requests).toEqual([]);
});

test('without the right password, the proxy opens no connection, and no message has the password', async () => {
  const wrong = 'https-secret';
  useProxy({ HTTPS_PROXY: `http://clerk:${wrong}@127.0.0.1:${proxy.port}` });
  try {
    const outcomes = JSON.stringify([
      await sendToModel('https://models.company.example/x'),
      await deliver('https://hooks.company.example/x'),
      await askMcpServer('https://mcp.company.example/'),
      await signOn(),
      await dialled('allowed.company.example', 443, 'tunnel'),
    ]);
    expect(outcomes).toContain('the proxy of HTTPS_PROXY opened no connection');
    expect(outcomes).toContain('answers 407 for allowed.company.example:443');
    expect(outcomes).not.toContain(wrong);
    await expect.poll(() => proxy.requests).toContain('407 CONNECT allowed.company.example:443');
    expect(proxy.requests.filter((line) => !line.startsWith('407 '))).toEqual([]);
  } finally {
    useProxy({ HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url });
  }
});

test('a proxy that takes connections and never answers ends each request after some time', async () => {
  const silent = net.createServer((socket) => void socket.on('error', () => {}));
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port: silentPort } = silent.address() as AddressInfo;
  useProxy({ HTTPS_PROXY: `http://127.0.0.1:${silentPort}` });
  try {
    const late = AbortSignal.timeout(2_000);
    const ended = await Promise.all([
      sendToModel('https://models.company.example/x'),
      send(
        { url: 'https://hooks.company.example/', body: '', headers: {} },
        { rules, resolve, timeoutMs: 2_000, signal },
      ),
      askMcpServer('https://mcp.company.example/'),
      fetchRefs(),
      askCodeHost({ ...question, url: gitBase, signal: late }).catch(() => 'late'),
      dialled('allowed.company.example', 443, 'tunnel'),
      openWebSocket('ws://service.company.example/').catch(() => 'late'),
    ]);
    expect(ended).toMatchObject([
      expect.stringContaining('cannot be reached'),
      { kind: 'failed' },
      { kind: 'failed' },
      'failed',
      'late',
      { kind: 'failed' },
      'late',
    ]);
  } finally {
    useProxy({ HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url });
    silent.close();
  }
}, 60_000);

/** Sources that open connections without the functions of `packages/system/src/outgoing`, and why. */
const direct: Readonly<Record<string, string>> = {
  'packages/client/src/send-plain.ts': 'the global agent of Node',
  'packages/system/src/outgoing/outgoing.ts': 'the functions themselves',
  'packages/system/src/outgoing/tunnel.ts': 'the functions themselves',
  'packages/system/src/trust-authorities.ts': 'opens none',
  'packages/worker/src/relay-thread/remote-cache.ts': 'a Unix socket',
  'packages/worker/src/sandboxes/docker/probe.ts': 'a Unix socket in a container',
  'packages/worker/src/sandboxes/engine/engine.ts': 'the Unix socket of the container engine',
  'packages/worker/src/supervisor-client/adopt.ts': 'a Unix socket',
};
const opens =
  /\bhttps?\.(?:request|get)\(|\(\w+ \? https : http\)|\? https : http\b|\bAgent\(|\bagent: false|\bnew WebSocket\(|\bnet\.(?:connect|createConnection)\(|import \{[^}]*\bconnect\b[^}]*\} from 'node:(?:net|tls)'|from 'node:https'|getBuiltinModule\([^)]*'node:(?:https|net|tls)'/;
const isTest = /\.test\.ts$|\/generated/;

test('all sources of service, worker and commands that open connections use the functions that know the proxy', async () => {
  const root = path.resolve(import.meta.dirname, '..');
  const found: string[] = [];
  for (const name of ['service', 'worker', 'cli', 'client', 'system', 'contract', 'definitions'])
    for await (const file of glob(`packages/${name}/src/**/*.ts`, { cwd: root })) {
      if (isTest.test(file)) continue;
      const text = await readFile(path.join(root, file), 'utf8');
      if (!opens.test(text)) continue;
      const isKnown = /from '@runyard\/system\/outgoing\/(?:outgoing|tunnel)'/.test(text);
      if (!isKnown || text.includes('agent: false')) found.push(file);
    }
  expect(found.sort()).toEqual(Object.keys(direct).sort());
});
