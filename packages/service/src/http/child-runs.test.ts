import { randomUUIDv7 } from 'node:crypto';
import { once } from 'node:events';
import type { ChildRun } from '@runyard/contract/child-runs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Assignment } from '../runs/assign.ts';
import { startTestService, type TestService } from './test-service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const at = '2026-01-02T03:04:05.000Z';
const children = '/harness-support/child-runs';

const started = async (assignment: Assignment): Promise<Assignment> => {
  const events = [{ seq: 1, occurred_at: at, type: 'agent_started', harness: 'oz', model_id: 'runbook' }];
  await service.request('POST', '/harness-support/events', { key: assignment.runToken, body: { events } });
  return assignment;
};
/** A run at work, in the mode that lets it start others. */
const orchestrator = async (body: Record<string, unknown> = {}) =>
  await started(await service.startExecution({ mode: 'orchestrate', ...body }));
const finish = (token: string, summary = 'done') =>
  service.request('POST', '/harness-support/finish-task', { key: token, body: { success: true, summary } });
const startChild = async (token: string, body: Record<string, unknown> = {}) =>
  (await service.request<{ run_id: string }>('POST', children, { key: token, body: { prompt: 'A part.', ...body } }))
    .body.run_id;
/** Hands a waiting run to a worker of its own, whose agent begins. */
const begin = async (runId: string) => await started(await service.claimRun(runId));
const run = async (runId: string) =>
  (await service.request<Record<string, unknown>>('GET', `/agent/runs/${runId}`)).body;

describe('POST child-runs answers', () => {
  test('200 with the id and state of a run below the own one, of the same creator and configuration', async () => {
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

  test('200, and its approval policy is never laxer than that of the run that starts it', async () => {
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

  test('200 with the same run for the same Idempotency-Key, also at the same time; 409 with another body', async () => {
    const { runToken: key } = await orchestrator({ config: { child_runs: { enabled: true, max_live: 1 } } });
    const headers = { 'idempotency-key': randomUUIDv7() };
    const send = (prompt: string) =>
      service.request<{ run_id: string }>('POST', children, { key, headers, body: { prompt } });
    const answers = await Promise.all([send('a'), send('a'), send('a')]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(answers.map(({ body }) => body.run_id)).size).toBe(1);
    expect((await send('b')).status).toBe(409);
  });

  test('403 with what to do where neither mode nor configuration allow it, or the configuration forbids it', async () => {
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
    await service.request('POST', `/agent/runs/${runId}/followups`, {
      body: { message: 'Split it.', mode: 'orchestrate' },
    });
    await service.problem(403, 'GET', children, { key });
    const { body } = await service.request<{ items: { id: string }[] }>('GET', '/harness-support/inbox', { key });
    const events = [{ seq: 2, occurred_at: at, type: 'follow_up_taken', follow_up_id: body.items[0]?.id }];
    await service.request('POST', '/harness-support/events', { key, body: { events } });
    expect((await service.request('GET', children, { key })).body).toEqual({ child_runs: [] });
  });

  test('400 for what a create refuses, with the member', async () => {
    const { runToken: key } = await orchestrator();
    const wrong = { '': {}, prompt: { prompt: ' ' }, 'config.model_id': { prompt: 'a', config: { model_id: 'none' } } };
    for (const body of Object.values(wrong)) await service.problem(400, 'POST', children, { key, body });
    const problem = await service.problem(400, 'POST', children, { key, body: wrong['config.model_id'] });
    expect(problem.errors?.[0]?.path).toBe('config.model_id');
  });

  test('403 for an environment of another team', async () => {
    const made = await service.request<{ uid: string }>('POST', '/agent/environments', {
      key: service.otherKey,
      body: { config: { name: 'Theirs' } },
    });
    const { runToken: key } = await orchestrator();
    const body = { prompt: 'a', config: { environment_id: made.body.uid } };
    await service.problem(403, 'POST', children, { key, body });
  });

  test('400 for runs nested deeper than 5', async () => {
    let { runToken } = await orchestrator();
    for (let depth = 1; depth <= 5; depth += 1)
      ({ runToken } = await begin(await startChild(runToken, { mode: 'orchestrate' })));
    await service.problem(400, 'POST', children, { key: runToken, body: { prompt: 'a' } });
  });

  test('409 for more live children than allowed, however many ask at once, and 200 when one has ended', async () => {
    const { runToken: key } = await orchestrator({ config: { child_runs: { enabled: true, max_live: 2 } } });
    const ask = () =>
      service.request<{ run_id: string; detail: string }>('POST', children, { key, body: { prompt: 'a' } });
    const answers = await Promise.all(Array.from({ length: 12 }, ask));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(2);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(10);
    expect(answers.find(({ status }) => status === 409)?.body.detail).toContain('Await or cancel some first');
    const first = answers.find(({ status }) => status === 200)?.body.run_id ?? '';
    await service.request('POST', `${children}/${first}/cancel`, { key });
    expect((await ask()).status).toBe(200);
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

  test('409 for an agent whose turn is over, and 401 for one whose execution has ended', async () => {
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

describe('GET child-runs answers', () => {
  test('200 with the own children, oldest first: state, last words, artifacts', async () => {
    const { runToken: key, runId } = await orchestrator();
    const first = await startChild(key, { title: 'First' });
    const second = await startChild(key, { title: 'Second' });
    const child = await begin(first);
    await service.request('POST', '/harness-support/report-artifact', {
      key: child.runToken,
      body: { artifact_type: 'PULL_REQUEST', data: { url: 'https://example.com/pr/1', branch: 'b' } },
    });
    await finish(child.runToken, 'It is 42.');
    await service.newRun();
    const { body } = await service.request<{ child_runs: ChildRun[] }>('GET', children, { key });
    expect(body.child_runs).toMatchObject([
      {
        run_id: first,
        title: 'First',
        state: 'SUCCEEDED',
        summary: 'It is 42.',
        artifacts: [{ artifact_type: 'PULL_REQUEST', url: 'https://example.com/pr/1' }],
      },
      { run_id: second, title: 'Second', state: 'QUEUED', artifacts: [] },
    ]);
    const one = await service.request<ChildRun>('GET', `${children}/${first}`, { key });
    expect(one.body).toEqual(body.child_runs[0]);
    const some = await service.request<{ child_runs: ChildRun[] }>('GET', `${children}?run_ids=${second}`, { key });
    expect(some.body.child_runs.map(({ run_id }) => run_id)).toEqual([second]);
    expect(await run(runId)).toMatchObject({ state: 'INPROGRESS' });
  });

  test('404 for a run that is no child of the own one: of another run, of another team, a grandchild, itself, nothing', async () => {
    const { runToken: key, runId } = await orchestrator();
    const child = await begin(await startChild(key, { mode: 'orchestrate' }));
    const grandchild = await startChild(child.runToken);
    const theirs = await service.newRun({}, service.otherKey);
    for (const id of [await service.newRun(), theirs, grandchild, runId, randomUUIDv7(), 'x', "'--"]) {
      await service.problem(404, 'GET', `${children}/${encodeURIComponent(id)}`, { key });
      await service.problem(404, 'POST', `${children}/${encodeURIComponent(id)}/cancel`, { key });
      await service.problem(404, 'GET', `${children}?run_ids=${encodeURIComponent(id)}&run_ids=${child.runId}`, {
        key,
      });
    }
  });

  test('when the child has ended, or is BLOCKED, and after wait_ms where neither happens', async () => {
    const { runToken: key } = await orchestrator();
    const first = await begin(await startChild(key));
    const second = await startChild(key);
    const late = await service.request<ChildRun>('GET', `${children}/${second}?wait_ms=50`, { key });
    expect(late.body.state).toBe('QUEUED');
    const waited = service.request<ChildRun>('GET', `${children}/${first.runId}?wait_ms=60000`, { key });
    const any = service.request<{ child_runs: ChildRun[] }>('GET', `${children}?until=any&wait_ms=60000`, { key });
    const all = service.request<{ child_runs: ChildRun[] }>('GET', `${children}?wait_ms=60000`, { key });
    await finish(first.runToken);
    expect((await waited).body.state).toBe('SUCCEEDED');
    expect((await any).body.child_runs.map(({ state }) => state)).toEqual(['SUCCEEDED', 'QUEUED']);
    await service.deps.db.query(
      "WITH b AS (UPDATE runs SET state = 'BLOCKED' WHERE id = $1 RETURNING id) SELECT pg_notify('runyard_runs', id::text) FROM b",
      [second],
    );
    expect((await all).body.child_runs.map(({ state }) => state)).toEqual(['SUCCEEDED', 'BLOCKED']);
  });
});

describe('while an agent waits for its children', () => {
  const holds = async (executionId: string) => {
    const rows = await service.deps.db.query(
      'SELECT FROM executions WHERE id = $1 AND (awaiting_until IS NULL OR awaiting_until < clock_timestamp())',
      [executionId],
    );
    return rows.length === 1;
  };
  const until = async (condition: () => Promise<boolean>) => {
    while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
  };

  test('it holds no slot; it holds one again when they have ended, and when it stops to wait', async () => {
    const { runToken: key, executionId } = await orchestrator();
    const child = await begin(await startChild(key));
    const waited = service.request('GET', `${children}/${child.runId}?wait_ms=60000`, { key });
    await until(async () => !(await holds(executionId)));
    await finish(child.runToken);
    await waited;
    expect(await holds(executionId)).toBe(true);

    const other = await startChild(key);
    const gone = new AbortController();
    const aborted = fetch(`${service.baseUrl}/api/v1${children}/${other}?wait_ms=60000`, {
      headers: { authorization: `Bearer ${key}` },
      signal: gone.signal,
    }).catch(() => {});
    await until(async () => !(await holds(executionId)));
    gone.abort();
    await aborted;
    await until(() => holds(executionId));
  });

  test('its child gets the only place in the limit of the team, before runs that came earlier', async () => {
    const limited = await startTestService();
    try {
      await limited.deps.db.query('UPDATE teams SET max_concurrent_executions = 1 WHERE id = $1', [limited.teamId]);
      const parent = await limited.startExecution({ mode: 'orchestrate' });
      const { runToken: key } = parent;
      const earlier = await limited.newRun();
      const child = await limited.request<{ run_id: string }>('POST', children, { key, body: { prompt: 'a' } });
      expect(await limited.assignNext(), 'no place is free').toBeNull();
      const waited = limited.request('GET', `${children}/${child.body.run_id}?wait_ms=60000`, { key });
      let next: Assignment | null = null;
      await until(async () => {
        next = await limited.assignNext();
        return next !== null;
      });
      expect(next).toMatchObject({ runId: child.body.run_id });
      expect(await limited.assignNext(), 'the child has the place').toBeNull();
      expect((await limited.request<{ state: string }>('GET', `/agent/runs/${earlier}`)).body.state).toBe('QUEUED');
      await limited.deps.db.query("UPDATE runs SET state = 'FAILED' WHERE id = $1", [child.body.run_id]);
      await limited.deps.db.query("SELECT pg_notify('runyard_runs', $1)", [child.body.run_id]);
      await waited;
    } finally {
      await limited.close();
    }
  }, 60_000);
});

describe('POST child-runs/{id}/cancel', () => {
  test('cancels the child and all below it; one that has ended stays as it is', async () => {
    const { runToken: key } = await orchestrator();
    const child = await begin(await startChild(key, { mode: 'orchestrate' }));
    const grandchild = await startChild(child.runToken);
    const answer = await service.request<ChildRun>('POST', `${children}/${child.runId}/cancel`, { key });
    expect([answer.status, answer.body.state]).toEqual([200, 'CANCELLED']);
    expect(await run(grandchild)).toMatchObject({ state: 'CANCELLED' });
    expect((await service.request<ChildRun>('POST', `${children}/${child.runId}/cancel`, { key })).body.state).toBe(
      'CANCELLED',
    );
  });

  test('waits for one that is PENDING until it was claimed', async () => {
    const { runToken: key } = await orchestrator();
    const child = await startChild(key);
    const pending = await service.claimRun(child, 'PENDING');
    const answer = service.request<ChildRun>('POST', `${children}/${child}/cancel`, { key });
    await started(pending);
    expect((await answer).body.state).toBe('CANCELLED');
  });

  test('answers 409 at once when the service stops while it waits for one that is PENDING', async () => {
    const stopping = await startTestService();
    const parent = await stopping.startExecution({ mode: 'orchestrate' });
    const child = await stopping.request<{ run_id: string }>('POST', children, {
      key: parent.runToken,
      body: { prompt: 'a' },
    });
    await stopping.claimRun(child.body.run_id, 'PENDING');
    const arrived = once(stopping.built.app.server, 'request');
    const answer = stopping.problem(409, 'POST', `${children}/${child.body.run_id}/cancel`, { key: parent.runToken });
    await arrived;
    const startedAt = performance.now();
    const closed = stopping.close();
    expect(await answer).toMatchObject({ error_code: 'conflict', retryable: true });
    expect(performance.now() - startedAt).toBeLessThan(15_000);
    await closed;
  });

  test('cancels a self-hosted one, which people cannot', async () => {
    const { runToken: key } = await orchestrator();
    const child = await startChild(key, { config: { worker_host: 'mine' } });
    await service.problem(422, 'POST', `/agent/runs/${child}/cancel`);
    expect((await service.request<ChildRun>('POST', `${children}/${child}/cancel`, { key })).body.state).toBe(
      'CANCELLED',
    );
  });
});

test('the task tells an agent what it may start, and for whom it works', async () => {
  const parent = await orchestrator({ title: 'Lead', config: { child_runs: { enabled: true, max_live: 3 } } });
  const task = async (key: string) =>
    (await service.request('POST', '/harness-support/resolve-prompt', { key, body: {} })).body;
  expect(await task(parent.runToken)).toMatchObject({ child_runs: { max_live: 3 } });
  const child = await begin(await startChild(parent.runToken));
  const told = await task(child.runToken);
  expect(told).toMatchObject({ parent_run: { run_id: parent.runId, title: 'Lead' } });
  expect(told).not.toHaveProperty('child_runs');
});
