/** Checks everything that an agent and its worker send: no secret reaches the store or the log. */

import { redacted } from '@runyard/system/redaction/redactor';
import { expect, test } from 'vitest';
import { testChildRuns } from '../../../../test/child-runs.ts';
import { openTestService } from '../../../../test/service.ts';
import { endSandbox } from '../../../runs/executions/reconcile/sandbox-end.ts';

const operatorKey = 'sk-ant-operator-0123456789';
const foreignToken = `ryr_${'f'.repeat(43)}`;
const foreignKey = `ryk_${'k'.repeat(43)}`;
const service = await openTestService({ env: { RUNYARD_ANTHROPIC_API_KEY: operatorKey } });
const { orchestrator, run, startChild } = testChildRuns(service);
const { db, executionDeps: deps } = service.deps;

const parent = await orchestrator();
const secrets = [parent.runToken, operatorKey, foreignToken, foreignKey];
/** A text with all secrets. */
const leak = (what: string) => `${what}: ${secrets.join(' ')}!`;
const clean = (what: string) => `${what}: ${secrets.map(() => redacted).join(' ')}!`;
const agent = (method: string, path: string, body: object) =>
  service.request<Record<string, string>>(method, `/harness-support${path}`, { key: parent.runToken, body });

/** Rows of all tables, and lines of the log, that contain one of the secrets. */
async function leaks(): Promise<string[]> {
  const tables = await db.query<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await db.query<{ row: string }>(`SELECT to_jsonb(t)::text AS row FROM "${name}" t`);
    found.push(
      ...rows.filter(({ row }) => secrets.some((secret) => row.includes(secret))).map(({ row }) => `${name} ${row}`),
    );
  }
  return [...found, ...service.logged.filter((line) => secrets.some((secret) => line.includes(secret)))];
}

test.each([
  ['PLAN', { title: leak('title'), content: leak('content'), document_uid: leak('uid') }],
  ['FILE', { filename: leak('name'), description: leak('description'), title: leak('title') }],
  ['SCREENSHOT', { description: leak('description') }],
  [
    'EXTERNAL_REFERENCE',
    { reference_type: leak('type'), url: 'https://example.com/', metadata: { [leak('k')]: [leak('v')] } },
  ],
  ['PULL_REQUEST', { url: `https://example.com/?token=${parent.runToken}`, branch: leak('branch') }],
])('an artifact of the type %s is stored without secrets', async (artifact_type, data) => {
  const answer = await agent('POST', '/report-artifact', { artifact_type, data });
  expect(answer.status, answer.text).toBe(200);
  expect(await leaks()).toEqual([]);
  const rows = await db.query<{ data: string }>('SELECT data::text FROM artifacts WHERE id = $1', [
    answer.body.artifact_uid,
  ]);
  expect(rows[0]?.data).toContain(redacted);
});

test('a child run is created without the secrets of its parent', async () => {
  const answer = await agent('POST', '/child-runs', {
    prompt: leak('prompt'),
    title: leak('title'),
    config: { base_prompt: leak('base'), mcp_servers: { s: { command: 'x', env: { TOKEN: parent.runToken } } } },
    metadata: { note: operatorKey },
  });
  expect(answer.status, answer.text).toBe(200);
  expect(await run(answer.body.run_id ?? '')).toMatchObject({
    prompt: clean('prompt'),
    title: clean('title'),
    agent_config: { base_prompt: clean('base') },
    metadata: { note: redacted },
  });
  expect(await leaks()).toEqual([]);
});

test('a message to another run arrives without secrets', async () => {
  const child = await startChild(parent.runToken);
  expect((await agent('POST', '/messages', { run_id: child, message: leak('message') })).status).toBe(200);
  const [row] = await db.query<{ message: string }>('SELECT message FROM followups WHERE run_id = $1', [child]);
  expect(row?.message).toContain(clean('message'));
  expect(await leaks()).toEqual([]);
});

test('the names of files that a run hands off are stored without secrets', async () => {
  const files = [{ filename: leak('name').replaceAll(' ', '-').slice(0, 200), size_bytes: 1 }];
  const answer = await agent('POST', '/upload-snapshot', { turn: 1, files });
  expect(answer.status, answer.text).toBe(200);
  expect(await leaks()).toEqual([]);
});

test('the reason of a shutdown is logged without secrets', async () => {
  expect((await agent('POST', '/report-shutdown', { reason: leak('reason') })).status).toBe(200);
  await expect.poll(() => service.logged.join('')).toContain(clean('reason'));
  expect(await leaks()).toEqual([]);
});

test("a worker's report about the end of a sandbox is stored without secrets", async () => {
  const { runId, executionId } = await orchestrator();
  await endSandbox(deps, executionId, { kind: 'exited', message: leak('the end of stderr'), exitCode: 1 });
  const said = secrets.slice(1).map(() => redacted);
  const { status_message } = (await run(runId)) as { status_message: { message: string } };
  for (const secret of secrets) expect(status_message.message).not.toContain(secret);
  expect(status_message.message).toContain(said.join(' '));
  expect(await leaks()).toEqual([]);
});

test('the failure that an agent reports is stored without secrets', async () => {
  const error = { message: leak('failed') };
  const answer = await agent('POST', '/finish-task', { success: false, summary: leak('summary'), error });
  expect(answer.status, answer.text).toBe(200);
  expect(await run(parent.runId)).toMatchObject({ status_message: { message: clean('failed') } });
  expect(await leaks()).toEqual([]);
});
