/**
 * Tests that the MCP server passes the conformance tests of the protocol. The files in `mcp-conformance` list the conformance tests
 * that are left out, with reasons. If one of these would pass, the test here fails, so that the lists stay correct.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../packages/service/test/service.ts';
import { installNpmPackages, type NpmPackages } from './support/npm-packages.ts';

const source = path.join(import.meta.dirname, 'mcp-conformance');
const limitMs = 240_000;

let packages: NpmPackages;
let service: TestService;
/**
 * A proxy in front of the service. The proxy adds an API key to the requests, because the conformance tests send none. In headers such
 * as `Host` and `Origin`, the proxy replaces its own port by the port of the service.
 */
const keyed = createServer((incoming, answer) => {
  const { hostname, port } = new URL(service.baseUrl);
  const own = `:${(keyed.address() as AddressInfo).port}`;
  const renamed = Object.entries(incoming.headers).map(([name, value]) => [
    name,
    String(value).replaceAll(own, `:${port}`),
  ]);
  const outgoing = send(
    {
      hostname,
      port,
      path: incoming.url,
      method: incoming.method,
      headers: { ...Object.fromEntries(renamed), authorization: `Bearer ${service.key}` },
    },
    (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answer);
    },
  );
  outgoing.on('error', () => answer.destroy());
  answer.on('close', () => outgoing.destroy());
  incoming.pipe(outgoing);
});

beforeAll(async () => {
  [packages, service] = await Promise.all([installNpmPackages(source), startTestService()]);
  await once(keyed.listen(0, '127.0.0.1'), 'listening');
  // Create a run with a conversation, because the conformance tests read the first resource of the server.
  const { runToken: key } = await service.startExecution();
  const events = [
    { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
    { type: 'turn_started', step_id: 's1', prompt: 'Do it' },
  ].map((event, index) => ({ seq: index + 1, occurred_at: '2026-11-21T10:00:00Z', ...event }));
  await service.request('POST', '/harness-support/events', { key, body: { events } });
}, limitMs);
afterAll(async () => {
  keyed.closeAllConnections();
  keyed.close();
  await service?.close();
  if (packages?.kind === 'ready') await packages.remove();
});

test.for(['2026-07-28', '2025-11-25'])(
  'the server conforms to the revision %s',
  { timeout: limitMs },
  async (revision, { skip }) => {
    if (packages.kind === 'missing') return skip(packages.reason);
    const url = `http://127.0.0.1:${(keyed.address() as AddressInfo).port}/mcp`;
    const program = path.join(packages.folder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
    const child = spawn(
      process.execPath,
      [
        ...[program, 'server', '--url', url, '--suite', 'all', '--spec-version', revision],
        ...['--expected-failures', path.join(source, `left-out-${revision}.yaml`)],
      ],
      { cwd: packages.folder, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (bytes: Buffer) => (output += bytes.toString()));
    const [code] = await once(child, 'close');
    expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' });
  },
);
