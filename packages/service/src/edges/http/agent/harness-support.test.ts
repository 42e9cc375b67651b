import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

const resolve = (key: string) => service.request('POST', '/harness-support/resolve-prompt', { key, body: {} });
const read = async (runId: string) => await service.ok('GET', `/agent/runs/${runId}`);

const newEnvironment = async () => {
  const body = { config: { name: 'E', setup_commands: ['make'] } };
  return (await service.ok<{ uid: string }>('POST', '/agent/environments', { body })).uid;
};

test("the service fails a run with resource_not_found if its environment was deleted before the setup, and ends the run's agent", async () => {
  const uid = await newEnvironment();
  const { runId, runToken } = await service.startExecution({ config: { environment_id: uid } });
  expect((await resolve(runToken)).body).toMatchObject({ environment: { uid } });
  await service.request('DELETE', `/agent/environments/${uid}`);
  expect((await resolve(runToken)).status).toBe(401);
  expect(await read(runId)).toMatchObject({
    state: 'FAILED',
    status_message: { error_code: 'resource_not_found', retryable: false, message: expect.stringContaining(uid) },
  });
});

/** Reports the first turn of a run, which executes the run's prompt. Then stores an empty workspace, and ends the sandbox. */
async function playAndLeave({ executionId, runToken }: { executionId: string; runToken: string }) {
  const occurred_at = new Date().toISOString();
  const events = [
    { seq: 1, occurred_at, type: 'agent_started', harness: 'oz', model_id: 'runbook' },
    { seq: 2, occurred_at, type: 'turn_started', step_id: 's', prompt: 'a' },
  ];
  await service.report(runToken, events);
  await service.ok('PUT', '/harness-support/workspace?turn=1', {
    key: runToken,
    raw: '',
    headers: { 'content-type': 'application/octet-stream' },
  });
  const report = { success: true, summary: 'done', turn: 1 };
  await service.request('POST', '/harness-support/finish-task', { key: runToken, body: report });
  await service.deps.db.query("UPDATE executions SET phase = 'ended', idle_until = NULL WHERE id = $1", [executionId]);
}

test.each([
  ['plan', undefined, undefined],
  ['plan', 'plan', 'plan'],
  ['plan', 'normal', 'normal'],
  ['orchestrate', undefined, 'orchestrate'],
])(
  'a follow-up to a run of the mode %s, with the mode %s, continues the run in a new sandbox in the mode %s',
  async (ofRun, ofFollowUp, mode) => {
    const execution = await service.startExecution({ mode: ofRun });
    expect((await resolve(execution.runToken)).body).toMatchObject({ mode: ofRun });
    await playAndLeave(execution);
    const body = { message: 'go ahead', ...(ofFollowUp ? { mode: ofFollowUp } : {}) };
    await service.request('POST', `/agent/runs/${execution.runId}/followups`, { body });
    const next = await service.claimRun(execution.runId);
    const task = await service.request<{ mode?: string }>('POST', '/harness-support/resolve-prompt', {
      key: next.runToken,
      body: {},
    });
    expect(task.body.mode).toBe(mode);
  },
);

test('the task names the executor of the run as the author of its commits', async () => {
  await service.deps.db.query("UPDATE users SET display_name = 'Ada', email = 'ada@example.com'");
  const ofPerson = await service.startExecution();
  expect((await resolve(ofPerson.runToken)).body).toMatchObject({ author: { name: 'Ada', email: 'ada@example.com' } });
  await service.deps.db.query(
    "UPDATE runs SET executor_kind = 'service_account', executor_uid = 'robot' WHERE id = $1",
    [ofPerson.runId],
  );
  expect((await resolve(ofPerson.runToken)).body).toMatchObject({
    author: { name: 'robot', email: 'robot@noreply.127.0.0.1' },
  });
});

test('a run that continues with its saved workspace needs no environment', async () => {
  const uid = await newEnvironment();
  const execution = await service.startExecution({ config: { environment_id: uid } });
  await playAndLeave(execution);
  await service.request('DELETE', `/agent/environments/${uid}`);
  await service.request('POST', `/agent/runs/${execution.runId}/followups`, { body: { message: 'more' } });
  const next = await service.claimRun(execution.runId);
  expect((await resolve(next.runToken)).body).toMatchObject({ workspace: { kind: 'empty' } });
});

test("the service fails a run with integration_not_configured if its model is no longer configured, and ends the run's agent", async () => {
  const { runId, runToken } = await service.startExecution();
  await service.deps.db.query("UPDATE runs SET model_id = 'anthropic/claude-sonnet-5-5' WHERE id = $1", [runId]);
  expect((await resolve(runToken)).status).toBe(401);
  expect(await read(runId)).toMatchObject({
    state: 'FAILED',
    status_message: { error_code: 'integration_not_configured', retryable: false },
  });
});

test("the service claims a run when its agent asks for the task before the worker's claim arrives", async () => {
  const { runId, runToken } = await service.startExecution({}, 'PENDING');
  expect((await resolve(runToken)).status).toBe(200);
  expect(await read(runId)).toMatchObject({ state: 'CLAIMED' });
});

test('the agent of a run without follow-ups gets its first task even while another request holds the lock of the run', async () => {
  const { runId, runToken } = await service.startExecution();
  const answer = await service.deps.db.transaction(async (tx) => {
    await tx.query('SELECT FROM runs r JOIN executions e ON e.run_id = r.id WHERE r.id = $1 FOR UPDATE', [runId]);
    return await resolve(runToken);
  });
  expect(answer.status).toBe(200);
});
