import { maxMcpServers } from '@runyard/contract/limits';
import { McpServer } from '@runyard/contract/team/mcp-servers';
import { beforeEach, describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const agent = await service.newKey({ kind: 'agent' });
const member = await service.newKey({ role: 'member' });
const other = service.otherKey;
beforeEach(() => service.deps.db.query('DELETE FROM mcp_servers'));

const base = '/agent/mcp-servers';
const url = 'https://example.com/mcp';
const secret = 'secret-of-the-server-123';
const remote = { name: 'Tickets', url, headers: { Authorization: `Bearer ${secret}` } };
const program = { name: 'Program', command: 'tickets-mcp', args: ['--stdio'], env: { TICKETS_KEY: secret } };
const create = async (body: object = remote) => await service.ok<McpServer>('POST', base, { body });

describe('POST /agent/mcp-servers', () => {
  test.each([
    ['url', remote, { url, header_names: ['Authorization'] }],
    ['command', program, { command: 'tickets-mcp', args: ['--stdio'], env_names: ['TICKETS_KEY'] }],
  ])('answers 201 and never shows the values: %s', async (_, body, shown) => {
    const made = await service.ok('POST', base, { body });
    const server = McpServer.parse(made);
    expect(server).toMatchObject({ name: body.name, ...shown });
    expect(await service.ok('GET', `${base}/${server.id}`)).toEqual(made);
    expect(await service.ok('GET', base)).toEqual({ mcp_servers: [made] });
    const [dump] = await service.deps.db.query<{ dump: string }>(
      `SELECT (SELECT json_agg(s)::text FROM mcp_servers s) || coalesce((SELECT json_agg(k)::text FROM idempotency_keys k), '') AS dump`,
    );
    for (const text of [dump?.dump, JSON.stringify(made)]) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(Buffer.from(secret).toString('hex'));
    }
  });

  test('stores one server for two requests with the same Idempotency-Key', async () => {
    const ask = () => service.request('POST', base, { body: remote, headers: { 'idempotency-key': 'mcp-1' } });
    const answers = await Promise.all([ask(), ask()]);
    expect(answers[0]?.body).toEqual(answers[1]?.body);
    const again = { body: { ...remote, name: 'B' }, headers: { 'idempotency-key': 'mcp-1' } };
    await service.problem(409, 'POST', base, again);
  });

  test.each([
    ['neither command nor url', { name: 'a' }, 'command'],
    ['both', { name: 'a', command: 'x', url }, 'command'],
    ['env of a url', { name: 'a', url, env: {} }, 'env'],
    ['headers of a command', { name: 'a', command: 'x', headers: {} }, 'headers'],
    ['a header that ends the line', { name: 'a', url, headers: { a: 'b\r\nhost: c' } }, 'headers.a'],
    ['a private address', { name: 'a', url: 'https://10.1.2.3/' }, 'url'],
    ['the metadata service', { name: 'a', url: 'http://169.254.169.254/' }, 'url'],
    ['a user in the url', { name: 'a', url: 'https://a:b@example.com/' }, 'url'],
    ['no name', { name: ' ', url }, 'name'],
  ])('answers 400 and names the member: %s', async (_, body, path) => {
    const problem = await service.problem(400, 'POST', base, { body });
    expect(JSON.stringify(problem)).toContain(path);
  });

  test(`answers 409 to more than ${maxMcpServers} servers of a team`, async () => {
    await create();
    await service.deps.db.query(
      `INSERT INTO mcp_servers (id, team_id, name, url, vault_key_id, sealed_values)
       SELECT gen_random_uuid(), team_id, name, url, vault_key_id, sealed_values FROM mcp_servers, generate_series(2, $1)`,
      [maxMcpServers],
    );
    await service.problem(409, 'POST', base, { body: remote });
  });

  test('refuses agent keys', async () => {
    await service.problem(403, 'POST', base, { key: agent, body: remote });
    expect((await service.request('POST', base, { key: member, body: remote })).status).toBe(201);
  });
});

describe('PATCH /agent/mcp-servers/{id}', () => {
  const patch = (id: string, body: object) => service.request('PATCH', `${base}/${id}`, { body });

  test('changes only the members that it names', async () => {
    const { id } = await create();
    expect((await patch(id, { name: 'Issues' })).body).toMatchObject({
      name: 'Issues',
      header_names: ['Authorization'],
    });
    const moved = { url: 'https://example.org/mcp', headers: { 'x-key': 'k' } };
    expect((await patch(id, moved)).body).toMatchObject({ url: moved.url, header_names: ['x-key'] });
  });

  test.each([
    ['the headers to another address', remote, { url: 'https://evil.example/' }, 'headers'],
    ['the variables to another program', program, { command: 'evil' }, 'env'],
    ['the variables to other arguments', program, { args: ['--print'] }, 'env'],
    ['an address to a program', program, { url }, 'url'],
    ['a program to an address', remote, { command: 'x' }, 'command'],
  ])('does not give %s', async (_, body, change, path) => {
    const { id } = await create(body);
    const problem = await service.problem(400, 'PATCH', `${base}/${id}`, { body: change });
    expect(JSON.stringify(problem)).toContain(path);
  });
});

test('every route of stored MCP servers answers 404 for a server of another team and for an invalid id', async () => {
  const { id } = await create();
  for (const [method, body] of [['GET'], ['PATCH', { name: 'x' }], ['DELETE']] as const) {
    await service.problem(404, method, `${base}/${id}`, { key: other, ...(body ? { body } : {}) });
    await service.problem(404, method, `${base}/nothing`, body ? { body } : {});
  }
  expect(await service.ok('DELETE', `${base}/${id}`)).toEqual({ success: true });
  await service.problem(404, 'GET', `${base}/${id}`);
});

describe('a run', () => {
  const run = (mcp_servers: object, key = service.key) => ({ key, body: { prompt: 'a', config: { mcp_servers } } });
  const resolve = async (token: string) =>
    await service.ok<Record<string, unknown>>('POST', '/harness-support/resolve-prompt', { key: token, body: {} });

  test('accepts stored servers only of its own team', async () => {
    const { id } = await create();
    expect((await service.request('POST', '/agent/runs', run({ x: { warp_id: id } }))).status).toBe(200);
    const foreign = await service.problem(403, 'POST', '/agent/runs', run({ x: { warp_id: id } }, other));
    const unknown = await service.problem(403, 'POST', '/agent/runs', run({ x: { id: 'none' } }));
    expect(unknown.detail).toMatch(/^config\.mcp_servers\.x: there is no such stored MCP server/);
    expect(foreign.detail).toBe(unknown.detail);
  });

  test.each([
    ['a url that is none', { x: { url: 'ftp://example.com' } }],
    ['a header that ends the line', { x: { url, headers: { a: 'b\nc' } } }],
    ['a name of dots', { '..': { url } }],
    ['21 servers', Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`s${at}`, { url }]))],
  ])('is refused with %s', async (_, servers) => {
    await service.problem(400, 'POST', '/agent/runs', run(servers));
  });

  test('gives its agent the programs with their variables, but only a path for servers over HTTP', async () => {
    const [http, local] = [await create(), await create(program)];
    const mcp_servers = {
      far: { warp_id: http.id },
      near: { id: local.id },
      'own one': { url: 'https://example.org/', headers: { authorization: 'own-secret-77' } },
    };
    const { runToken } = await service.startExecution({ config: { mcp_servers } });
    const task = await resolve(runToken);
    expect(task.mcp_servers).toEqual([
      { name: 'far', gateway_path: '/api/v1/gateway/mcp/far' },
      { name: 'near', command: 'tickets-mcp', args: ['--stdio'], env: { TICKETS_KEY: secret } },
      { name: 'own one', gateway_path: '/api/v1/gateway/mcp/own%20one' },
    ]);
    expect(JSON.stringify(task)).not.toMatch(/own-secret-77|Bearer|example\.(com|org)/);
  });

  test('fails if a stored server was deleted after the create of the run', async () => {
    const { id } = await create();
    const { runId, runToken } = await service.startExecution({ config: { mcp_servers: { x: { warp_id: id } } } });
    await service.request('DELETE', `${base}/${id}`);
    await service.request('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });
    expect(await service.ok('GET', `/agent/runs/${runId}`)).toMatchObject({
      state: 'FAILED',
      status_message: { error_code: 'resource_not_found', message: expect.stringContaining('config.mcp_servers.x') },
    });
  });

  test('can start only child runs whose MCP servers the run itself has', async () => {
    const [own, foreign] = [await create(), await create()];
    const granted = { url: 'https://example.org/', headers: { authorization: 'own-secret-77' } };
    const mcp_servers = { far: { warp_id: own.id }, site: granted };
    const { runToken } = await service.startExecution({ mode: 'orchestrate', config: { mcp_servers } });
    const child = (servers: object) => ({ key: runToken, body: { prompt: 'a', config: { mcp_servers: servers } } });
    const path = '/harness-support/child-runs';
    for (const refused of [
      { id: foreign.id },
      { url: 'https://evil.example/' },
      { url: granted.url, headers: { authorization: 'guess' } },
    ]) {
      const problem = await service.problem(403, 'POST', path, child({ x: refused }));
      expect(problem.detail).toContain('config.mcp_servers.x');
    }
    const allowed = { a: { id: own.id }, b: { url: granted.url }, c: { command: 'x' } };
    const started = await service.ok<{ run_id: string }>('POST', path, child(allowed));
    const [row] = await service.deps.db.query<{ servers: unknown }>(
      `SELECT config->'mcp_servers' AS servers FROM run_requests WHERE run_id = $1`,
      [started.run_id],
    );
    const sealed = { url: granted.url, headers: { authorization: expect.stringMatching(/^sealed:/) } };
    expect(row?.servers).toEqual({ a: { warp_id: own.id }, b: sealed, c: { command: 'x' } });
  });
});
