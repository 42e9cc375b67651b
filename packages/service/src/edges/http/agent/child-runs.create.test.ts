import { randomUUIDv7 } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { at, children, nesting, testChildRuns } from '../../../../test/child-runs.ts';
import { openTestService } from '../../../../test/service.ts';
import {
  findParentsWithPlace,
  findWaitingOrphan,
  releaseChildren,
} from '../../../runs/executions/queue/release-children.ts';

const service = await openTestService();

const { started, orchestrator, finish, startChild, begin, run } = testChildRuns(service);

describe('POST child-runs answers', () => {
  test('200 with the id and state of a child run that has the creator and the configuration of its parent', async () => {
    const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'E' } },
    });
    const parent = await orchestrator({
      config: { environment_id: environment.body.uid, name: 'lead', idle_timeout_minutes: 3 },
      metadata: { ticket: '7' },
    });
    const answer = await service.request<{ run_id: string }>('POST', children, {
      key: parent.runToken,
      body: { prompt: 'Part one.', title: 'One', metadata: { part: '1' }, config: { name: 'helper' } },
    });
    expect([answer.status, answer.body]).toEqual([200, { run_id: expect.any(String), state: 'QUEUED' }]);
    const [child, lead] = [await run(answer.body.run_id), await run(parent.runId)];
    expect(child).toMatchObject({
      title: 'One',
      prompt: 'Part one.',
      parent_run_id: parent.runId,
      source: 'ORCHESTRATION',
      creator: lead.executor,
      executor: lead.executor,
      metadata: { ticket: '7', part: '1' },
      agent_config: { environment_id: environment.body.uid, model_id: 'runbook', name: 'helper' },
    });
    expect(child.agent_config).not.toHaveProperty('idle_timeout_minutes');
  });

  test("200, and the child's approval policy is at least as strict as its parent's", async () => {
    const policyOf = async (parent: string | undefined, own: string | undefined) => {
      const withPolicy = (policy: string | undefined) => (policy ? { approval_policy: policy } : {});
      const { runToken } = await orchestrator({ config: withPolicy(parent) });
      const item = await run(await startChild(runToken, { config: withPolicy(own) }));
      return (item.agent_config as { approval_policy?: string }).approval_policy;
    };
    expect(await policyOf('ask', undefined)).toBe('ask');
    expect(await policyOf('ask', 'auto-approve')).toBe('ask');
    expect(await policyOf('ask', 'auto-deny')).toBe('auto-deny');
    expect(await policyOf('auto-deny', 'ask')).toBe('auto-deny');
    expect(await policyOf(undefined, 'ask')).toBe('ask');
    expect(await policyOf(undefined, undefined)).toBeUndefined();
  });

  test('200, and the child has the approval rules of its parent besides its own, or asks about everything as its parent does', async () => {
    const rulesOf = async (parent: object, own: object) => {
      const { runToken } = await orchestrator({ config: { approval_policy: 'ask', ...parent } });
      const item = await run(await startChild(runToken, { config: own }));
      return (item.agent_config as { approval_rules?: object[] }).approval_rules;
    };
    const [push, host] = [{ push: '*' }, { host: 'api.example.com' }];
    const asks = { approval_policy: 'ask' };
    expect(await rulesOf({ approval_rules: [push] }, { approval_policy: 'auto-approve' })).toEqual([push]);
    expect(await rulesOf({ approval_rules: [push] }, { ...asks, approval_rules: [host] })).toEqual([push, host]);
    expect(await rulesOf({}, { ...asks, approval_rules: [host] })).toBeUndefined();
  });

  test('200 with the same run to requests with the same Idempotency-Key, also concurrently; 409 with another body', async () => {
    const { runToken: key } = await orchestrator({ config: { child_runs: { enabled: true, max_live: 1 } } });
    const headers = { 'idempotency-key': randomUUIDv7() };
    const send = (prompt: string) =>
      service.request<{ run_id: string }>('POST', children, { key, headers, body: { prompt } });
    const answers = await Promise.all([send('a'), send('a'), send('a')]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(answers.map(({ body }) => body.run_id)).size).toBe(1);
    expect((await send('b')).status).toBe(409);
  });

  test('403 with a remedy when neither mode nor configuration allow child runs, or the configuration forbids them', async () => {
    for (const body of [{}, { mode: 'plan' }, { mode: 'orchestrate', config: { child_runs: { enabled: false } } }]) {
      const { runToken: key } = await started(await service.startExecution(body));
      const problem = await service.problem(403, 'POST', children, { key, body: { prompt: 'a' } });
      expect(problem).toMatchObject({ error_code: 'not_authorized', detail: expect.stringContaining('orchestrate') });
      await service.problem(403, 'GET', children, { key });
      await service.problem(403, 'GET', `${children}/${randomUUIDv7()}`, { key });
      await service.problem(403, 'POST', `${children}/${randomUUIDv7()}/cancel`, { key });
    }
    const { runToken } = await started(await service.startExecution({ config: { child_runs: { enabled: true } } }));
    expect(await startChild(runToken)).toEqual(expect.any(String));
  });

  test('200 after a follow-up that asks the run to orchestrate', async () => {
    const { runId, runToken: key } = await started(await service.startExecution());
    const body = await service.ok<{ followup_id: string }>('POST', `/agent/runs/${runId}/followups`, {
      body: { message: 'Split it.', mode: 'orchestrate' },
    });
    await service.problem(403, 'GET', children, { key });
    const events = [{ seq: 2, occurred_at: at, type: 'follow_up_taken', follow_up_id: body.followup_id }];
    await service.report(key, events);
    expect(await service.ok('GET', children, { key })).toEqual({ child_runs: [] });
  });

  test('400 that names the member, for each request that POST /agent/runs also refuses', async () => {
    const { runToken: key } = await orchestrator();
    const wrong = { '': {}, prompt: { prompt: ' ' }, 'config.model_id': { prompt: 'a', config: { model_id: 'none' } } };
    for (const body of Object.values(wrong)) await service.problem(400, 'POST', children, { key, body });
    const problem = await service.problem(400, 'POST', children, { key, body: wrong['config.model_id'] });
    expect(problem.errors?.[0]?.path).toBe('config.model_id');
  });

  test('403 for an environment of another team', async () => {
    const createdEnvironment = await service.request<{ uid: string }>('POST', '/agent/environments', {
      key: service.otherKey,
      body: { config: { name: 'Theirs' } },
    });
    const child_runs = { enabled: true, overrides: ['environment_id'] };
    const { runToken: key } = await orchestrator({ config: { child_runs } });
    const body = { prompt: 'a', config: { environment_id: createdEnvironment.body.uid } };
    const problem = await service.problem(403, 'POST', children, { key, body });
    expect(problem.detail).toContain('another team');
  });

  test('400 for runs nested deeper than 5', async () => {
    let { runToken } = await orchestrator({ config: nesting });
    for (let depth = 1; depth <= 5; depth += 1)
      ({ runToken } = await begin(await startChild(runToken, { mode: 'orchestrate' })));
    await service.problem(400, 'POST', children, { key: runToken, body: { prompt: 'a' } });
  });

  test('200 for children above max_live, also concurrently: they wait, and start in order when others have ended', async () => {
    const lead = await orchestrator({ config: { child_runs: { enabled: true, max_live: 2 } } });
    const { db, executionDeps } = service.deps;
    await db.query("UPDATE executions SET pool = 'elsewhere' WHERE phase = 'queued'");
    const start = () =>
      service.request<{ run_id: string }>('POST', children, { key: lead.runToken, body: { prompt: 'a' } });
    const answers = await Promise.all(Array.from({ length: 6 }, start));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 200));
    const states = async () =>
      (
        await db.query<{ run_id: string; waits: boolean }>(
          `SELECT e.run_id, e.waits_for_place AS waits FROM executions e JOIN runs r ON r.id = e.run_id
           WHERE r.parent_run_id = $1 AND r.state = 'QUEUED' ORDER BY e.id`,
          [lead.runId],
        )
      ).map(({ run_id, waits }) => `${run_id} ${waits ? 'waits' : 'may start'}`);
    const before = await states();
    expect(before.filter((each) => each.endsWith('may start'))).toHaveLength(2);
    const waiting = before.find((each) => each.endsWith('waits'))?.split(' ')[0] ?? '';
    expect(await run(waiting)).toMatchObject({
      state: 'QUEUED',
      status_message: { message: expect.stringContaining('child_runs.max_live') },
    });
    const begun = [await service.assignNext(), await service.assignNext()];
    expect(begun.every((each) => each !== null)).toBe(true);
    expect(await service.assignNext(), 'no third child starts').toBeNull();

    await Promise.all([1, 2, 3].map(() => releaseChildren(executionDeps)));
    expect(await service.assignNext(), 'no place is free yet').toBeNull();
    for (const each of begun) await db.query("UPDATE runs SET state = 'SUCCEEDED' WHERE id = $1", [each?.runId]);
    await Promise.all([1, 2, 3].map(() => releaseChildren(executionDeps)));
    expect((await states()).filter((each) => each.endsWith('may start'))).toEqual(
      before
        .filter((each) => each.endsWith('waits'))
        .slice(0, 2)
        .map((each) => each.replace('waits', 'may start')),
    );
  });

  test('a round looks only at parents that have a free place for a waiting child, the longest wait first', async () => {
    const { db, executionDeps } = service.deps;
    const newParent = async () => {
      const parent = await service.newRun({
        mode: 'orchestrate',
        config: { child_runs: { enabled: true, max_live: 1 } },
      });
      const live = await service.newRun({ parent_run_id: parent });
      const waiting = await service.newRun({ parent_run_id: parent });
      await db.query(
        "UPDATE executions SET pool = 'elsewhere', waits_for_place = run_id = $1 WHERE run_id IN ($1, $2, $3)",
        [waiting, live, parent],
      );
      return { parent, live, waiting };
    };
    const [full, later, first] = [await newParent(), await newParent(), await newParent()];
    const ours = [full, later, first].map(({ parent }) => parent);
    const found = async () =>
      (await db.query(findParentsWithPlace, [])).map(({ parent_id }) => parent_id).filter((id) => ours.includes(id));
    expect(await found()).toEqual([]);
    for (const { live } of [later, first])
      expect((await service.request('POST', `/agent/runs/${live}/cancel`)).status).toBe(200);
    await db.query("UPDATE executions SET queued_at = queued_at - interval '1 hour' WHERE run_id = $1", [
      first.waiting,
    ]);
    expect(await found()).toEqual([first.parent, later.parent]);
    await releaseChildren(executionDeps);
    expect(await found()).toEqual([]);
    const waits = await db.query<{ run_id: string }>(
      'SELECT run_id FROM executions WHERE waits_for_place AND run_id = ANY($1::uuid[])',
      [[full, later, first].map(({ waiting }) => waiting)],
    );
    expect(waits).toEqual([{ run_id: full.waiting }]);
  });

  test('a child that waits because of max_live is cancelled at once, and starts if its parent was deleted', async () => {
    const lead = await orchestrator({ config: { child_runs: { enabled: true, max_live: 1 } } });
    const ask = async () => await startChild(lead.runToken);
    await ask();
    const [second, third] = [await ask(), await ask()];
    expect((await service.request('POST', `/agent/runs/${second}/cancel`)).status).toBe(200);
    expect((await run(second)).state).toBe('CANCELLED');
    await service.deps.db.query('UPDATE runs SET parent_run_id = NULL WHERE id = $1', [third]);
    expect(await service.deps.db.query(findWaitingOrphan, [])).toHaveLength(1);
    await releaseChildren(service.deps.executionDeps);
    expect((await service.claimRun(third)).runId).toBe(third);
  });

  test('409 for 100 live runs in the tree', async () => {
    const { runToken: key, runId } = await orchestrator({ config: { child_runs: { enabled: true, max_live: 32 } } });
    for (let n = 0; n < 3; n += 1) {
      const child = await service.newRun({ parent_run_id: runId });
      await Promise.all(Array.from({ length: n < 2 ? 32 : 33 }, () => service.newRun({ parent_run_id: child })));
    }
    const problem = await service.problem(409, 'POST', children, { key, body: { prompt: 'a' } });
    expect(problem.detail).toContain('100 runs');
  });

  test('409 for an agent whose turn is over, and 401 for an agent whose execution has ended', async () => {
    const { runToken: key, executionId } = await orchestrator();
    await finish(key);
    await service.problem(409, 'POST', children, { key, body: { prompt: 'a' } });
    await service.deps.db.query("UPDATE executions SET phase = 'ended' WHERE id = $1", [executionId]);
    await service.problem(401, 'POST', children, { key, body: { prompt: 'a' } });
  });

  test('409 for an agent whose run was cancelled', async () => {
    const { runToken: key, runId } = await orchestrator();
    await service.request('POST', `/agent/runs/${runId}/cancel`);
    await service.problem(409, 'POST', children, { key, body: { prompt: 'a' } });
  });
});

test('the task of an agent names the parent run, and how many child runs the agent may start', async () => {
  const parent = await orchestrator({ title: 'Lead', config: { child_runs: { enabled: true, max_live: 3 } } });
  const task = async (key: string) => await service.ok('POST', '/harness-support/resolve-prompt', { key, body: {} });
  expect(await task(parent.runToken)).toMatchObject({ child_runs: { max_live: 3 } });
  const child = await begin(await startChild(parent.runToken));
  const childTask = await task(child.runToken);
  expect(childTask).toMatchObject({ parent_run: { run_id: parent.runId, title: 'Lead' } });
  expect(childTask).not.toHaveProperty('child_runs');
});
