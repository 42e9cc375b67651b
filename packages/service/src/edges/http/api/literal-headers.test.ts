/**
 * Tests literal headers of MCP servers in configurations: no answer contains them, and they work only in the place for which they were set.
 */
import http, { type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { aSchedule, scheduleBase } from '../../../../test/schedules.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService({ env: { RUNYARD_ALLOW_PRIVATE_NETWORKS: '127.0.0.0/8' } });
const { db } = service.deps;
const viewer = await newPerson(service, await teamUidOf(service), 'viewer');

const seen: IncomingHttpHeaders[] = [];
const server = http.createServer((request, response) => {
  seen.push(request.headers);
  response.writeHead(200, { 'content-type': 'application/json' });
  request.resume().on('end', () => response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: {} })));
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
afterAll(() => {
  server.close();
  server.closeAllConnections();
});
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
const value = 'Bearer literal-value-0123456789';
const servers = (headers: object, at = url) => ({ tickets: { url: at, headers } });

interface ConfigAnswer {
  readonly agent_config: { readonly mcp_servers: { readonly tickets: { readonly headers: Record<string, string> } } };
}
const headerOf = (answer: ConfigAnswer) => answer.agent_config.mcp_servers.tickets.headers.Authorization ?? '';

test('the server gets the value of a literal header, and no answer, table or row of the team has it', async () => {
  const config = { mcp_servers: servers({ Authorization: value }) };
  const runId = await service.newRun({ prompt: 'a', config });
  const schedule = await service.request<{ id: string }>('POST', scheduleBase, {
    body: { ...aSchedule, agent_config: config },
    headers: { 'idempotency-key': 'one' },
  });
  const identity = await service.request('POST', '/agent/identities', { body: { name: 'I', ...config } });
  expect([schedule.status, identity.status]).toEqual([201, 201]);
  const answers = [
    await service.request('GET', `/agent/runs/${runId}`, { key: viewer.key }),
    await service.request('GET', `${scheduleBase}/${schedule.body.id}`, { key: viewer.key }),
    schedule,
    identity,
  ];
  for (const { text } of answers) {
    expect(text).not.toContain('literal-value');
    expect(text).toContain('"Authorization":"sealed:');
  }
  for (const table of ['runs', 'schedules', 'agent_identities', 'content_revisions', 'idempotency_keys', 'executions'])
    expect(await db.query(`SELECT 1 FROM ${table} t WHERE t::text LIKE '%literal-value%'`), table).toEqual([]);

  const { runToken } = await service.claimRun(runId);
  const task = await service.request('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });
  expect([task.status, task.text]).toEqual([200, expect.not.stringContaining('literal-value')]);
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  await service.request('POST', '/gateway/mcp/tickets', { key: runToken, body });
  expect(seen.map(({ authorization }) => authorization)).toEqual([value]);
});

test('a repeated sealed header keeps its value, and equal values are equal texts', async () => {
  const create = async (headers: object, at = url, key = service.key) =>
    await service.request<ConfigAnswer & { detail: string }>('POST', scheduleBase, {
      key,
      body: { ...aSchedule, agent_config: { mcp_servers: servers(headers, at) } },
    });
  const first = await create({ Authorization: value });
  const sealed = headerOf(first.body);
  expect(headerOf((await create({ Authorization: sealed })).body)).toBe(sealed);
  expect(headerOf((await create({ Authorization: value })).body)).toBe(sealed);
  for (const [headers, at, key] of [
    [{ Authorization: sealed }, 'https://evil.example/mcp', service.key],
    [{ 'X-Other': sealed }, url, service.key],
    [{ Authorization: sealed }, url, service.otherKey],
    [{ Authorization: `${sealed.slice(0, -2)}AA` }, url, service.key],
  ] as const) {
    const refused = await create(headers, at, key);
    expect([refused.status, refused.body.detail]).toEqual([400, expect.stringContaining('Send the value itself')]);
  }
});
