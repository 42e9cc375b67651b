import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { openTestService } from '../../../../service/test/service.ts';
import { createContext } from '../../context/context.ts';
import { connect } from '../../service/connect.ts';
import { send } from './answer.ts';
import { mcpServersFrom } from './mcp-servers.ts';
import { type RunFilters, runsQuery } from './query.ts';
import { rerunRequest } from './rerun.ts';
import { withIds } from './with-ids.ts';

const service = await openTestService();
const folder = newFolder();
const context = {
  ...createContext({ RUNYARD_BASE_URL: service.baseUrl, RUNYARD_API_KEY: service.key }),
  out: () => {},
  report: () => {},
};
const client = connect(context);

test('runsQuery sets the query parameter of each filter, and accepts the name of an environment', async () => {
  const { uid } = await client.createEnvironment({ body: { config: { name: 'Build' } } });
  const body = { title: 'Look at lobsters', config: { environment_id: uid, name: 'n' }, metadata: { a: '1', b: '2' } };
  const { runId } = await service.startExecution(body);
  const other = await service.newRun({ title: 'Another' });
  const found = async (filters: RunFilters) =>
    (await client.listRuns({ query: await runsQuery(client, filters) })).runs.map(({ run_id }) => run_id);
  const only: RunFilters[] = [
    { environment: 'Build' },
    { name: 'n' },
    { metadata: ['a=1', 'b=2'] },
    { search: 'lobster' },
    { environment: uid, model: 'runbook', source: 'API', location: 'REMOTE', createdAfter: '2020-01-01T00:00:00Z' },
  ];
  for (const filters of only.slice(0, 4)) expect(await found(filters), JSON.stringify(filters)).toEqual([runId]);
  expect(await found({ environment: 'none' })).toEqual([other]);
  expect(await found({ createdBefore: '2020-01-01T00:00:00Z' })).toEqual([]);
  expect(await found({ sort: 'created_at', order: 'asc' })).toEqual([runId, other]);
  expect(await found({ below: runId })).toEqual([]);
  await expect(found({ environment: 'Biuld' })).rejects.toThrow('there is no environment "Biuld"');
  await expect(found({ source: 'NONE' })).rejects.toThrow('source');
});

test('rerunRequest changes the members that the options name, and keeps all other members of the configuration', async () => {
  const runId = await service.newRun({ config: { name: 'n', max_turns: 3 }, metadata: { a: '1' } });
  expect(await rerunRequest(client, runId, {})).toEqual({});
  const body = await rerunRequest(client, runId, { prompt: 'Do more', maxCost: '2' });
  expect(body).toMatchObject({ prompt: 'Do more', config: { name: 'n', max_turns: 3, max_cost_usd: 2 } });
  const created = await client.rerunRun({ params: { runId }, body });
  const createdRun = await client.getRun({ params: { runId: created.run_id } });
  expect(createdRun).toMatchObject({ prompt: 'Do more', agent_config: { max_cost_usd: 2 }, metadata: { a: '1' } });
});

test('withStoredServers finds stored MCP servers by name, and mcpServersFrom reads other servers from a file', async () => {
  const stored = await client.createMcpServer({ body: { name: 'tickets', command: 'tickets-mcp' } });
  const file = path.join(folder, 'servers.json');
  writeFileSync(file, JSON.stringify({ mcpServers: { docs: { command: 'docs-mcp', args: ['-v'] } } }));
  const config = { mcp_servers: mcpServersFrom(['tickets', file]) };
  expect(await withIds(client, { config })).toEqual({
    config: { mcp_servers: { tickets: { warp_id: stored.id }, docs: { command: 'docs-mcp', args: ['-v'] } } },
  });
  expect(() => mcpServersFrom(['docs', file])).toThrow('two servers are called "docs"');
  await expect(withIds(client, { config: { mcp_servers: mcpServersFrom(['other']) } })).rejects.toThrow(
    'there is no MCP server "other"',
  );
});

test('the command send attaches files to a follow-up', async () => {
  const { runId } = await service.startExecution();
  const file = path.join(folder, 'notes.txt');
  writeFileSync(file, 'Notes');
  const said: string[] = [];
  await send({ ...context, out: (text) => void said.push(text) }, runId, 'Read the notes', { attach: [file] });
  expect(said.join('')).toMatch(/^sent with a file\n/);
  const [row] = await service.deps.db.query<{ name: string }>(
    'SELECT file_name AS name FROM attachments WHERE run_id = $1 AND followup_id IS NOT NULL',
    [runId],
  );
  expect(row?.name).toBe('notes.txt');
});
