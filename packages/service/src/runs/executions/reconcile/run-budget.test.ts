import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { startFakeModels } from '../../../../../../test/fakes/models.ts';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { answerAtFixedCost, answerUsd, askModel, openRequests, opus, stateOf } from '../../../../test/budgets.ts';
import { nesting, testChildRuns } from '../../../../test/child-runs.ts';
import { openTestService } from '../../../../test/service.ts';
import { recordLostRequests } from '../../../team/usage/budget/lost-requests.ts';
import { reconcile } from './reconcile.ts';

const fake = closeAtEnd(await startFakeModels());
const service = await openTestService({ env: fake.env });
const { db } = service.deps;
const { orchestrator, startChild, begin, run, started } = testChildRuns(service);
beforeEach(() => answerAtFixedCost(fake));

const ask = (runToken: string, more?: object) => askModel(service.baseUrl, runToken, more);
const stream = { stream: true };
const accounted = () => expect.poll(() => openRequests(service)).toBe(0);

/** Sends one request after another until the service refuses a request. */
async function askUntilRefused(runToken: string, most = 20) {
  for (let asked = 0; asked < most; asked++) {
    const answer = await ask(runToken);
    if (answer.status !== 200) return { asked, ...answer };
    await accounted();
  }
  throw new Error('nothing was refused');
}

describe('max_cost_usd', () => {
  it('ends the run with budget_exceeded at the first request after the budget is spent, and does not send this request to the provider', async () => {
    const { runId, runToken } = await service.startExecution({
      config: { model_id: opus, max_cost_usd: answerUsd * 2.5 },
    });
    const before = fake.requests.length;
    const refused = await askUntilRefused(runToken);
    expect(refused).toMatchObject({ asked: 3, status: 403, code: 'budget_exceeded' });
    expect(fake.requests).toHaveLength(before + 3);
    expect(await stateOf(service, runId)).toEqual({
      state: 'FAILED',
      code: 'budget_exceeded',
      message: 'The run has spent $0.0036 of its max_cost_usd of $0.003. Create a run with a higher limit.',
    });
    expect((await ask(runToken)).status).toBe(401);
  });

  it('allows parallel requests while the budget is large enough, and only one request at a time near the end of the budget', async () => {
    const parallel = async (max_cost_usd: number, areAdmitted: boolean) => {
      const { runToken } = await service.startExecution({ config: { model_id: opus, max_cost_usd } });
      const before = fake.requests.length;
      fake.misbehave({ kind: 'hold', afterPieces: 1 });
      const first = ask(runToken, stream);
      await fake.request(before + 1);
      // The fake provider delays the first answer, so it gets a second request meanwhile only if both requests were admitted at the same
      // time.
      const second = ask(runToken, stream);
      if (areAdmitted) await second;
      else expect(await Promise.race([second.then(() => 'beside'), delay(700, 'waits')])).toBe('waits');
      fake.release();
      expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual([200, 200]);
    };
    await parallel(100, true);
    await parallel(1, false);
  });

  it('is shared by a run and its children, and limits a child to the remaining budget of the parent', async () => {
    const parent = await orchestrator({ config: { model_id: opus, max_cost_usd: answerUsd * 3.5, ...nesting } });
    const child = await begin(
      await startChild(parent.runToken, { config: { max_cost_usd: 500 }, mode: 'orchestrate' }),
    );
    const grandchild = await begin(await startChild(child.runToken, { config: { max_cost_usd: 0.5 } }));
    expect((await run(child.runId)).agent_config).toMatchObject({ max_cost_usd: answerUsd * 3.5 });
    expect((await run(grandchild.runId)).agent_config).toMatchObject({ max_cost_usd: answerUsd * 3.5 });
    for (const { runToken } of [parent, child, grandchild, grandchild]) {
      expect((await ask(runToken)).status).toBe(200);
      await accounted();
    }
    for (const { runId, runToken } of [grandchild, child, parent]) {
      expect(await ask(runToken)).toMatchObject({ status: 403, code: 'budget_exceeded' });
      expect(await stateOf(service, runId)).toMatchObject({ state: 'FAILED', code: 'budget_exceeded' });
    }
    expect((await stateOf(service, grandchild.runId)).message).toContain(parent.runId);
  });

  it('is refused with 400 if the price of the model is not known', async () => {
    const body = { prompt: 'Do it', config: { model_id: 'local/fake-local', max_cost_usd: 1 } };
    const problem = await service.problem(400, 'POST', '/agent/runs', { body });
    expect(problem.errors?.[0]).toMatchObject({ path: 'config.max_cost_usd' });
    expect(problem.errors?.[0]?.message).toContain('RUNYARD_UNKNOWN_MODEL_PRICE');
  });

  it.each([0, -1, '1', null])('is refused with 400 if the value is %j', async (max_cost_usd) => {
    const problem = await service.problem(400, 'POST', '/agent/runs', {
      body: { prompt: 'Do it', config: { max_cost_usd } },
    });
    expect(problem.errors?.[0]?.path).toBe('config.max_cost_usd');
  });

  it('is ignored if its value in the stored configuration is invalid', async () => {
    const { runId, runToken } = await service.startExecution({ config: { model_id: opus } });
    const config = JSON.stringify({ max_cost_usd: 'ten', max_turns: {}, max_duration_minutes: 'x' });
    await db.query('UPDATE run_requests SET config = config || $2::jsonb WHERE run_id = $1', [runId, config]);
    expect((await ask(runToken)).status).toBe(200);
  });

  it("counts the price of a request's prompt even if the service process dies during the request", async () => {
    const { runId, runToken } = await service.startExecution({ config: { model_id: opus, max_cost_usd: 1 } });
    fake.misbehave({ kind: 'hold', afterPieces: 1 });
    const asked = ask(runToken, stream);
    await expect.poll(() => openRequests(service)).toBe(1);
    expect(await recordLostRequests(db, [])).toBe(0);
    const stored = await db.query<{ text: string }>('SELECT known_usage::text AS text FROM open_model_requests');
    expect(stored[0]?.text).not.toContain(runToken);
    await db.query("UPDATE open_model_requests SET created_at = now() - interval '3 minutes'");
    expect(await recordLostRequests(db, [service.deps.serviceInstanceId])).toBe(0);
    expect(await recordLostRequests(db, [])).toBe(1);
    const [lost] = await db.query<{ spent: number }>(
      'SELECT spent_usd::float8 AS spent FROM run_spend WHERE run_id = $1',
      [runId],
    );
    expect(lost?.spent).toBeGreaterThan(0);
    fake.release();
    await asked;
    const spent = async () => {
      const [row] = await db.query<{ spent: number }>(
        'SELECT spent_usd::float8 AS spent FROM run_spend WHERE run_id = $1',
        [runId],
      );
      return row?.spent;
    };
    await expect.poll(spent).toBeCloseTo((lost?.spent ?? 0) + answerUsd, 9);
  });
});

describe('max_turns', () => {
  it('ends the run when the run and its children together have used all allowed model answers', async () => {
    const parent = await orchestrator({ config: { model_id: opus, max_turns: 3 } });
    const child = await begin(await startChild(parent.runToken));
    expect((await ask(parent.runToken)).status).toBe(200);
    await accounted();
    expect(await askUntilRefused(child.runToken)).toMatchObject({ asked: 2, status: 403, code: 'budget_exceeded' });
    expect(await stateOf(service, child.runId)).toMatchObject({ state: 'FAILED', code: 'budget_exceeded' });
  });

  it('does not count requests that the provider refused', async () => {
    const { runToken } = await service.startExecution({ config: { model_id: opus, max_turns: 1 } });
    fake.misbehave({ kind: 'status', status: 400, message: 'no' }, 3);
    for (let i = 0; i < 3; i++) {
      expect((await ask(runToken)).status).toBe(400);
      await accounted();
    }
    expect((await askUntilRefused(runToken)).asked).toBe(1);
  });
});

describe('max_duration_minutes', () => {
  const workFor = (executionId: string, seconds: number) =>
    db.query(
      'UPDATE executions SET started_at = started_at - make_interval(secs => $2), deadline_at = deadline_at - make_interval(secs => $2) WHERE id = $1',
      [executionId, seconds],
    );

  it('ends the run with budget_exceeded when the run has worked for this time, and not earlier', async () => {
    const working = await started(await service.startExecution({ config: { max_duration_minutes: 10 } }));
    await workFor(working.executionId, 590);
    await reconcile(service.deps.executionDeps);
    expect((await stateOf(service, working.runId)).state).toBe('INPROGRESS');
    await workFor(working.executionId, 11);
    await reconcile(service.deps.executionDeps);
    expect(await stateOf(service, working.runId)).toEqual({
      state: 'FAILED',
      code: 'budget_exceeded',
      message:
        'The run has worked for its max_duration_minutes of 10, and it was ended. Create a run with a higher limit.',
    });
  });

  it('adds up the times of all turns of the run', async () => {
    const { runId, runToken, executionId } = await started(
      await service.startExecution({ config: { max_duration_minutes: 10 } }),
    );
    await workFor(executionId, 400);
    await service.request('POST', '/harness-support/finish-task', {
      key: runToken,
      body: { success: true, summary: '' },
    });
    await service.request('POST', `/agent/runs/${runId}/followups`, { body: { message: 'more' } });
    const [row] = await db.query<{ left: number }>(
      'SELECT extract(epoch FROM deadline_at - clock_timestamp())::float8 AS left FROM executions WHERE id = $1',
      [executionId],
    );
    expect(row?.left).toBeGreaterThan(180);
    expect(row?.left).toBeLessThan(201);
  });

  it('limits a child run to the remaining time of its parent', async () => {
    const parent = await orchestrator({ config: { max_duration_minutes: 10 } });
    await workFor(parent.executionId, 300);
    const child = await startChild(parent.runToken, { config: { max_duration_minutes: 60 } });
    const { max_duration_minutes } = (await run(child)).agent_config as { max_duration_minutes: number };
    expect(max_duration_minutes).toBeGreaterThan(4.8);
    expect(max_duration_minutes).toBeLessThan(5.01);
  });
});
