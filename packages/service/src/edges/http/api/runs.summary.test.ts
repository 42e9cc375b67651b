import { randomUUIDv7 } from 'node:crypto';
import { ListRunsResponse, type RunItem } from '@runyard/contract/runs/runs';
import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { db } = service.deps;

const list = async (query: string, key?: string): Promise<RunItem[]> =>
  ListRunsResponse.parse(await service.ok('GET', `/agent/runs?${query}`, key ? { key } : {})).runs;
const summaryOf = async (runId: string) => (await list(`view=summary&run_id=${runId}`))[0];

test("a summary has the members that a row in the dashboard's list of runs shows, and neither prompt nor configuration", async () => {
  const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
    body: { config: { name: 'Node 24' } },
  });
  const execution = await service.startExecution({
    title: 'A title',
    prompt: 'the whole prompt',
    config: { name: 'n', environment_id: environment.body.uid, base_prompt: 'the base prompt' },
    metadata: { secret_plan: 'metadata' },
  });
  const { runId } = execution;
  for (let i = 0; i < 4; i += 1) {
    await service.request('POST', '/harness-support/report-artifact', {
      key: execution.runToken,
      body: {
        artifact_type: 'EXTERNAL_REFERENCE',
        data: { reference_type: 'issue', url: `https://example.com/${i}`, metadata: { long: 'text' } },
      },
    });
  }
  await db.query(
    `INSERT INTO model_requests VALUES ($1, $2, $3, 'm', 'p', 200, 10, 5, 0, 0, 0.001, 0.002, 0, 0, NULL, 12)`,
    [randomUUIDv7(), runId, execution.executionId],
  );
  await service.newRun({ parent_run_id: runId });
  const ended = await service.newRun({ parent_run_id: runId });
  await db.query(`UPDATE runs SET state = 'FAILED', error_code = 'budget_exceeded' WHERE id = $1`, [ended]);

  const { creator, ...summary } = (await summaryOf(runId)) ?? {};
  expect(summary).toEqual({
    run_id: runId,
    task_id: runId,
    title: 'A title',
    state: 'CLAIMED',
    created_at: expect.any(String),
    updated_at: expect.any(String),
    started_at: null,
    finished_at: null,
    run_time: expect.stringMatching(/^PT[\d.]+S$/),
    status_message: { message: expect.any(String) },
    source: 'API',
    executor: creator,
    model_id: 'runbook',
    harness: 'oz',
    environment: { environment_id: environment.body.uid, name: 'Node 24' },
    execution_location: 'REMOTE',
    root_run_id: runId,
    child_runs: { total: 2, live: 1 },
    is_sandbox_running: true,
    is_run_type_cancellable: true,
    session_link: `${service.baseUrl}/runs/${runId}`,
    artifacts: [0, 1, 2].map((n) => ({
      artifact_type: 'EXTERNAL_REFERENCE',
      created_at: expect.any(String),
      data: { reference_type: 'issue', url: `https://example.com/${n}` },
    })),
    request_usage: { total_tokens: 15, inference_cost: 0.3, inference_cost_usd: 0.003 },
  });
  expect(creator).toEqual({ type: 'user', uid: expect.any(String), display_name: 'Administrator' });
  expect((await list('error_code=budget_exceeded&view=summary')).map(({ run_id }) => run_id)).toEqual([ended]);
  for (const query of ['error_code=budget_exceeded&view=summary', 'error_code=budget_exceeded'])
    expect((await list(query)).map(({ error_category: kind }) => kind)).toEqual(['user_error']);
  expect((await list('error_code=budget_exceeded&error_code=internal_error')).map((run) => run.run_id)).toEqual([
    ended,
  ]);
  expect(await list(`view=summary&run_id=${runId}`, service.otherKey)).toEqual([]);
});

test('the usage in a summary has no cost if a price is unknown', async () => {
  const { runId, executionId } = await service.startExecution();
  await db.query(
    `INSERT INTO model_requests VALUES ($1, $2, $3, 'm', 'p', 200, 10, 5, 0, 0, NULL, NULL, NULL, NULL, NULL, 12)`,
    [randomUUIDv7(), runId, executionId],
  );
  expect((await summaryOf(runId))?.request_usage).toEqual({ total_tokens: 15 });
});

test('the summary of a BLOCKED run has the beginning of its question, but not the action', async () => {
  const execution = await service.startExecution({ config: { approval_policy: 'ask' } });
  const request = {
    request_id: 'q1',
    kind: 'permission',
    title: 'x'.repeat(1000),
    action: { name: 'shell', category: 'command', input: { command: 'rm' } },
  };
  const events = [
    { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
    { type: 'turn_started', step_id: 's1', prompt: 'Go.' },
    { type: 'blocked', step_id: 's1', request },
  ];
  await service.report(execution.runToken, events);
  const summary = await summaryOf(execution.runId);
  expect(summary?.state).toBe('BLOCKED');
  const { title, ...blockedOn } = summary?.blocked_on ?? { title: '' };
  expect(blockedOn).toEqual({ request_id: 'q1', kind: 'permission', asked_at: expect.any(String) });
  expect(title).toMatch(/^x{200,}…$/);
  expect(summary?.status_message?.message.length).toBeLessThanOrEqual(301);
});

test('a summary names the automation and the schedule that started the run, and the factory whose agent executes it', async () => {
  const factory = await service.ok<{ uid: string }>('POST', '/factory', { body: { name: 'Plant' } });
  const automation = await service.ok<{ uid: string }>('POST', `/factory/${factory.uid}/automations`, {
    body: {
      name: 'Look into alerts',
      prompt: 'Look.',
      triggers: [{ provider: 'schedule', event: 'cron_fired', schedule: { name: 'nightly', cron: '@yearly' } }],
    },
  });
  const runId = await service.newRun();
  const contents = [
    { kind: 'automation', uid: automation.uid, revision: 1, author: null, accepted: true },
    { kind: 'definition', uid: factory.uid, revision: 1, author: null, accepted: true },
  ];
  await db.query(
    `WITH request AS (UPDATE run_requests SET contents = $2 WHERE run_id = $1)
     UPDATE runs SET schedule_id = $3, schedule_name = 'Nightly', schedule_cron = '@daily' WHERE id = $1`,
    [runId, JSON.stringify(contents), randomUUIDv7()],
  );
  expect(await summaryOf(runId)).toMatchObject({
    automation: { automation_id: automation.uid, name: 'Look into alerts' },
    factory_uid: factory.uid,
    schedule: { schedule_name: 'Nightly', cron_schedule: '@daily' },
  });
});

test('a cursor of a list of summaries works in the list of whole runs', async () => {
  await db.query('DELETE FROM runs');
  const created = [await service.newRun(), await service.newRun(), await service.newRun()];
  const first = await service.request<ListRunsResponse>('GET', '/agent/runs?limit=1&view=summary');
  const rest = await list(`limit=2&cursor=${first.body.page_info.next_cursor}`);
  expect([...first.body.runs, ...rest].map(({ run_id }) => run_id)).toEqual(created.reverse());
  expect(rest.every(({ prompt }) => prompt !== undefined)).toBe(true);
});
