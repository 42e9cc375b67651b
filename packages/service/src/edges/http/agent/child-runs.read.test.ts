import { randomUUIDv7 } from 'node:crypto';
import type { ChildRun } from '@runyard/contract/runs/child-runs';
import { describe, expect, test } from 'vitest';
import { children, nesting, testChildRuns } from '../../../../test/child-runs.ts';
import { openTestService, startTestService } from '../../../../test/service.ts';
import type { Assignment } from '../../../runs/executions/queue/assign.ts';

const service = await openTestService();

const { orchestrator, finish, startChild, begin, run } = testChildRuns(service);

describe('GET child-runs answers', () => {
  test("200 with the run's children, oldest first: state, last message, artifacts", async () => {
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

  test("404 for another run's or team's child, a grandchild, the run itself and an unknown id", async () => {
    const { runToken: key, runId } = await orchestrator({ config: nesting });
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

  test('as soon as a child has ended or is BLOCKED, and otherwise after wait_ms', async () => {
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

describe('an agent that waits for its children', () => {
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

  test('frees its slot, and takes a slot again when the children have ended or the wait stops', async () => {
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

  test('gives the only slot of the team to its child, even if other runs were queued earlier', async () => {
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
  });
});
