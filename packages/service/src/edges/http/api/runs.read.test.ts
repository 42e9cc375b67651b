import { randomUUIDv7 } from 'node:crypto';
import { RunItem } from '@runyard/contract/runs/runs';
import { GetRunTimelineResponse } from '@runyard/contract/runs/timeline';
import { beforeEach, describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService({ env: { RUNYARD_ANTHROPIC_API_KEY: 'not-a-key' } });
beforeEach(async () => {
  await service.deps.db.query('DELETE FROM runs');
});

describe('GET /agent/runs/{id}', () => {
  test('answers 200 with every member that the run has', async () => {
    const execution = await service.startExecution({
      title: 'A title',
      config: { name: 'nightly' },
      metadata: { a: 'b' },
    });
    await service.request('POST', '/harness-support/report-artifact', {
      key: execution.runToken,
      body: { artifact_type: 'PULL_REQUEST', data: { url: 'https://example.com/pr/1', branch: 'fix' } },
    });
    await service.deps.db.query(
      `INSERT INTO model_requests VALUES ($1, $2, $3, 'm', 'p', 200, 10, 5, 0, 0, 0.001, 0.002, 0, 0, NULL, 12)`,
      [randomUUIDv7(), execution.runId, execution.executionId],
    );
    const answer = await service.request('GET', `/agent/runs/${execution.runId}`);
    const run = RunItem.parse(answer.body);
    expect(run).toMatchObject({
      task_id: execution.runId,
      title: 'A title',
      state: 'CLAIMED',
      started_at: null,
      session_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      session_link: `${service.baseUrl}/runs/${execution.runId}`,
      creator: { type: 'user', display_name: 'Administrator' },
      executor: { type: 'user' },
      agent_config: { name: 'nightly' },
      conversation_id: execution.conversationId,
      is_sandbox_running: true,
      is_run_type_cancellable: true,
      artifacts: [
        { artifact_type: 'PULL_REQUEST', data: { url: 'https://example.com/pr/1', branch: 'fix', status: 'unknown' } },
      ],
      root_run_id: execution.runId,
      metadata: { a: 'b' },
      scope: { type: 'Team' },
      execution_location: 'REMOTE',
      request_usage: {
        total_tokens: 15,
        model_token_usage: [{ model_id: 'm', total_tokens: 15, usage_type: 'byok' }],
        inference_cost: 0.3,
        inference_cost_usd: 0.003,
      },
    });
    expect(run.finished_at).toBeNull();
    expect(run).not.toHaveProperty('factory_uid');
    expect(run.run_time).toMatch(/^PT[\d.]+S$/);
    expect(run.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  });

  test("shows the root run of the run's tree, and the time at which the run last ended, until the run is continued", async () => {
    const root = await service.newRun({ metadata: { factory_uid: 'of-no-factory' } });
    const child = await service.newRun({ parent_run_id: root });
    const grandchild = await service.newRun({ parent_run_id: child });
    const read = async (id: string) => RunItem.parse((await service.request('GET', `/agent/runs/${id}`)).body);
    expect(await read(grandchild)).toMatchObject({ root_run_id: root, parent_run_id: child });
    expect(await read(grandchild)).not.toHaveProperty('factory_uid');
    await service.request('POST', `/agent/runs/${grandchild}/cancel`);
    const ended = await read(grandchild);
    expect(Date.parse(ended.finished_at ?? '')).toBeGreaterThanOrEqual(Date.parse(ended.created_at));
    await service.request('POST', `/agent/runs/${grandchild}/followups`, { body: { message: 'Go on.' } });
    expect((await read(grandchild)).finished_at).toBeNull();
    // A delete of a run does not delete the runs that it started.
    await service.deps.db.query('DELETE FROM runs WHERE id = $1', [root]);
    expect(await read(grandchild)).toMatchObject({ root_run_id: root });
  });

  test('shows the service account of an agent key as creator', async () => {
    const key = await service.newKey({ kind: 'agent' });
    const id = await service.newRun({}, key);
    const { body } = await service.request('GET', `/agent/runs/${id}`);
    expect(body).toMatchObject({ creator: { type: 'service_account', display_name: 'A key' } });
  });

  test('shows that a self-hosted run cannot be cancelled', async () => {
    const id = await service.newRun({ config: { worker_host: 'my-box' } });
    expect((await service.request('GET', `/agent/runs/${id}`)).body).toMatchObject({ is_run_type_cancellable: false });
  });
});

describe('GET /agent/runs/{id}/timeline', () => {
  test('answers 200 with the events, oldest first', async () => {
    const { runId } = await service.startExecution();
    const answer = await service.request('GET', `/agent/runs/${runId}/timeline`);
    const { events } = GetRunTimelineResponse.parse(answer.body);
    expect(events.map((event) => event.event_type)).toEqual(['oz_run_created', 'oz_run_claimed']);
    expect(events[1]).toMatchObject({ run_id: runId, execution_id: 1 });
  });
});
