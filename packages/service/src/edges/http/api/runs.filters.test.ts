import { randomUUIDv7 } from 'node:crypto';
import { ListRunsResponse, type RunItem } from '@runyard/contract/runs/runs';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService({ env: { RUNYARD_ANTHROPIC_API_KEY: 'not-a-key' } });
beforeEach(async () => {
  await service.deps.db.query('DELETE FROM runs');
});

interface ListQuery {
  readonly [name: string]: string | number | readonly string[] | undefined;
}

const list = async (query: ListQuery = {}, key?: string) => {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((each): [string, string] => [name, String(each)]),
  );
  const answer = await service.request('GET', `/agent/runs?${new URLSearchParams(pairs)}`, key ? { key } : {});
  expect(answer.status, answer.text).toBe(200);
  return ListRunsResponse.parse(answer.body);
};

const ids = (page: ListRunsResponse) => page.runs.map((run) => run.run_id);

describe('GET /agent/runs', () => {
  test('lists only the runs of the team, newest change first, 20 on a page', async () => {
    for (let i = 0; i < 22; i += 1) await service.newRun({ title: `Run ${i}` });
    await service.newRun({}, service.otherKey);
    const page = await list();
    expect(page.runs.map(({ title }) => title)).toEqual(Array.from({ length: 20 }, (_, i) => `Run ${21 - i}`));
    expect(page.page_info.has_next_page).toBe(true);
    const rest = await list({ cursor: page.page_info.next_cursor });
    expect(rest.runs.map(({ title }) => title)).toEqual(['Run 1', 'Run 0']);
    expect(rest.page_info).toEqual({ has_next_page: false });
    expect((await list({}, service.otherKey)).runs).toHaveLength(1);
  });

  test('makes the same number of queries for 100 runs as for one', async () => {
    const count = async (limit: number, view: 'full' | 'summary') => {
      const { query } = service.deps.db;
      let queries = 0;
      const counted = {
        ...service.deps.db,
        query: (...args: Parameters<typeof query>) => {
          queries += 1;
          return query(...args);
        },
      };
      const { listRuns } = await import('../../../runs/runs/list/list.ts');
      const context = { teamId: service.teamId, teamUid: 'x', baseUrl: '' };
      const outcome = await listRuns(counted as never, service.deps.signing, context, {
        limit,
        view,
        sort_by: 'updated_at',
        sort_order: 'desc',
      });
      if (outcome.kind !== 'ok') throw new Error('no page');
      expect(outcome.page.runs).toHaveLength(limit);
      return queries;
    };
    for (let i = 0; i < 100; i += 1) await service.newRun();
    for (const view of ['full', 'summary'] as const) expect(await count(100, view)).toBe(await count(1, view));
  });

  test.each([
    ['limit=0', 'limit'],
    ['limit=501', 'limit'],
    ['limit=x', 'limit'],
    ['limit=1.5', 'limit'],
    ['limit=', 'limit'],
    ['limit=1&limit=2', 'limit'],
    ['view=small', 'view'],
    ['error_code=oops', 'error_code.0'],
    ['run_id=x&'.repeat(101), 'run_id'],
    ['creator=x&'.repeat(21), 'creator'],
    ['sort_by=color', 'sort_by'],
    ['sort_order=up', 'sort_order'],
    ['state=RUNNING', 'state.0'],
    ['source=FAX', 'source.0'],
    ['task_status=lost', 'task_status.0'],
    ['factory_only=yes', 'factory_only'],
    ['created_after=yesterday', 'created_after'],
    ['cursor=abc', 'cursor'],
    ['cursor=a.b', 'cursor'],
    ['name=%00', 'name'],
    ['metadata[a]=1&metadata[b]=1&metadata[c]=1&metadata[d]=1&metadata[e]=1&metadata[f]=1', 'metadata'],
    ['metadata[__proto__]=a', 'metadata.__proto__'],
    ['ancestor_run_id=x', 'ancestor_run_id'],
    ['artifact_type=SONG', 'artifact_type'],
  ])('answers 400 for %s', async (query, path) => {
    const problem = await service.problem(400, 'GET', `/agent/runs?${query}`);
    expect(problem.errors?.map((error) => error.path)).toContain(path);
  });

  test('answers 400 for a changed cursor, and for a cursor of another sort, order, filter or team', async () => {
    for (let i = 0; i < 3; i += 1) await service.newRun({ title: `${i}` });
    const cursor = (await list({ limit: 1 })).page_info.next_cursor ?? '';
    expect((await list({ limit: 2, cursor })).runs).toHaveLength(2);
    for (const query of ['sort_by=created_at', 'sort_order=asc', 'state=QUEUED', 'name=x', 'metadata[a]=b']) {
      await service.problem(400, 'GET', `/agent/runs?${query}&cursor=${cursor}`);
    }
    await service.problem(400, 'GET', `/agent/runs?cursor=${cursor}`, { key: service.otherKey });
    await service.problem(400, 'GET', `/agent/runs?cursor=${cursor.slice(0, -2)}`);
    const swapped = (cursor[5] === 'A' ? 'B' : 'A') + cursor.slice(6);
    await service.problem(400, 'GET', `/agent/runs?cursor=${cursor.slice(0, 5)}${swapped}`);
  });

  test('ignores unknown parameters', async () => {
    await service.newRun();
    expect((await list({ colour: 'red', anything: '1' })).runs).toHaveLength(1);
  });

  test('filters by columns, states, times, metadata, words, artifacts, parents and environments', async () => {
    const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'E' } },
    });
    const a = await service.newRun({
      title: 'Alpha',
      prompt: 'Fix 100% of it',
      config: { name: 'n', model_id: 'runbook', environment_id: environment.body.uid, skill_spec: 'o/r:s' },
      metadata: { k: 'v', l: 'w', automation_id: 'auto', factory_uid: 'plant' },
    });
    const execution = await service.startExecution({
      prompt: 'beta, as in 0199a000-0000-7000-8000-00000000beef',
      parent_run_id: a,
      config: { model_id: 'claude-sonnet-5-5' },
    });
    const b = execution.runId;
    await service.request('POST', '/harness-support/report-artifact', {
      key: execution.runToken,
      body: { artifact_type: 'PLAN', data: {} },
    });
    const { body: runB } = await service.request<RunItem>('GET', `/agent/runs/${b}`);
    const expected: [ListQuery, string[]][] = [
      [{ name: 'n' }, [a]],
      [{ state: 'CLAIMED' }, [b]],
      [{ state: ['CLAIMED', 'QUEUED'], sort_by: 'created_at', sort_order: 'asc' }, [a, b]],
      [{ source: 'ORCHESTRATION' }, [b]],
      [{ source: ['API', 'ORCHESTRATION', 'MCP'], sort_by: 'created_at', sort_order: 'asc' }, [a, b]],
      [{ source: ['MCP', 'CUSTOM_WEBHOOK'] }, []],
      [{ task_status: 'running', name: 'n' }, [a]],
      [{ task_status: ['complete', 'blocked', 'cancelled', 'failed'] }, []],
      [{ model_id: 'anthropic/claude-sonnet-5-5' }, [b]],
      [{ environment_id: environment.body.uid }, [a]],
      [{ environment_id: 'empty-environment' }, [b]],
      [{ skill: 'o/r:s' }, [a]],
      [{ skill_spec: 'o/r:s' }, [a]],
      [{ ancestor_run_id: a }, [b]],
      [{ 'metadata[k]': 'v', 'metadata[l]': 'w', environment_id: environment.body.uid }, [a]],
      [{ 'metadata[k]': 'other' }, []],
      [{ automation_id: 'auto', skill: 'o/r:s' }, [a]],
      [{ automation_id: 'other' }, []],
      [{ automation_id: 'auto', 'metadata[automation_id]': 'other' }, []],
      [{ factory_uid: 'plant', name: 'n' }, [a]],
      [{ factory_uid: 'other' }, []],
      [{ factory_uid: ['other', 'plant'], source: 'ORCHESTRATION' }, [b]],
      // The metadata of these runs names a factory, but the runs execute none of its definitions.
      [{ factory_only: 'true' }, []],
      [{ factory_only: 'false', name: 'n' }, [a]],
      [{ artifact_type: 'PLAN' }, [b]],
      [{ artifact_type: 'FILE' }, []],
      [{ q: '100% FIX' }, [a]],
      [{ q: '_' }, []],
      [{ q: a }, [a]],
      [{ q: ` ${b.toUpperCase()} ` }, [b]],
      [{ q: `${service.baseUrl}/runs/${b}?x#y` }, [b]],
      [{ q: a, source: 'ORCHESTRATION' }, []],
      [{ q: a.slice(0, -1) }, []],
      [{ q: '0199a000-0000-7000-8000-00000000beef' }, [b]],
      [{ created_after: runB.created_at }, []],
      [{ created_before: runB.created_at }, [a]],
      [{ creator: runB.creator?.uid, executor: runB.executor?.uid, sort_by: 'title' }, [b, a]],
      [{ creator: 'nobody' }, []],
      [{ creator: ['nobody', runB.creator?.uid ?? ''], sort_by: 'title' }, [b, a]],
      [{ run_id: [a, randomUUIDv7(), 'no id', b.toUpperCase()], sort_by: 'title' }, [b, a]],
      [{ run_id: [a, b], name: 'n' }, [a]],
      [{ run_id: a, q: 'beta' }, []],
      [{ run_id: 'no id' }, []],
      [{ error_code: 'budget_exceeded' }, []],
      [{ execution_location: 'LOCAL' }, []],
      [{ schedule_id: 'x' }, []],
    ];
    for (const [query, found] of expected) expect(ids(await list(query)), JSON.stringify(query)).toEqual(found);
    for (const query of [{ q: a }, { run_id: a }]) expect(ids(await list(query, service.otherKey))).toEqual([]);
  });

  test('lists an ended run as running while a descendant of the run works', async () => {
    const root = await service.newRun();
    const below = await service.newRun({ parent_run_id: await service.newRun({ parent_run_id: root }) });
    const { db } = service.deps;
    await db.query(`UPDATE runs SET state = 'ERROR' WHERE id = $1`, [root]);
    const isListed = async (...task_status: string[]) => ids(await list({ task_status })).includes(root);
    expect([await isListed('running'), await isListed('failed'), await isListed('blocked')]).toEqual([
      true,
      true,
      false,
    ]);
    const both = ids(await list({ task_status: ['running', 'failed'] }));
    expect(both.filter((id) => id === root)).toHaveLength(1);
    expect(both).toHaveLength(3);
    await db.query(`UPDATE runs SET state = 'CANCELLED' WHERE parent_run_id IS NOT NULL`);
    expect(await isListed('running')).toBe(false);
    await db.query(`UPDATE runs SET state = 'QUEUED' WHERE id = $1`, [below]);
    expect(await isListed('running', 'cancelled')).toBe(true);
  });

  test('lists runs of webhooks under both names of their source', async () => {
    const id = await service.newRun();
    await service.deps.db.query(`UPDATE runs SET source = 'WEBHOOK' WHERE id = $1`, [id]);
    for (const source of ['WEBHOOK', 'CUSTOM_WEBHOOK']) expect(ids(await list({ source }))).toEqual([id]);
    expect(ids(await list({ source: ['WEBHOOK', 'CUSTOM_WEBHOOK'] }))).toEqual([id]);
  });

  test('pages neither skip nor repeat a run, for any sort and even if all values are equal', async () => {
    const { db } = service.deps;
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            title: fc.constantFrom('a', 'B', 'ä', ''),
            skill: fc.constantFrom(null, 'x', 'Y'),
            micros: fc.nat(3),
          }),
          {
            minLength: 1,
            maxLength: 25,
          },
        ),
        fc.constantFrom('updated_at', 'created_at', 'title', 'agent'),
        fc.constantFrom('asc', 'desc'),
        fc.integer({ min: 1, max: 7 }),
        async (runs, sortBy, sortOrder, limit) => {
          await db.query('DELETE FROM runs');
          for (const run of runs) {
            await db.query(
              `WITH request AS (INSERT INTO run_requests (run_id, prompt) VALUES ($1, ''))
               INSERT INTO runs (id, team_id, state, title, model_id, harness, source, creator_kind, creator_uid, executor_kind,
                 executor_uid, conversation_id, current_execution_id, skill_spec, created_at, updated_at)
               VALUES ($1, $2, 'QUEUED', $3, 'runbook', 'oz', 'API', 'user', 'u', 'user', 'u', $1, $1, $4, $5, $5)`,
              [randomUUIDv7(), service.teamId, run.title, run.skill, `2026-01-01T00:00:00.00000${run.micros}Z`],
            );
          }
          const seen: RunItem[] = [];
          let cursor: string | undefined;
          do {
            const page = await list({ sort_by: sortBy, sort_order: sortOrder, limit, cursor });
            seen.push(...page.runs);
            cursor = page.page_info.next_cursor;
          } while (cursor !== undefined);
          expect(new Set(seen.map((run) => run.run_id)).size).toBe(runs.length);
          expect(seen).toHaveLength(runs.length);
          const whole = await list({ sort_by: sortBy, sort_order: sortOrder, limit: 500 });
          expect(seen.map((run) => run.run_id)).toEqual(ids(whole));
          if (sortBy === 'agent') {
            const isLast = seen.map((run) => run.agent_skill === undefined);
            expect(isLast).toEqual([...isLast].sort());
          }
        },
      ),
      { numRuns: 25 },
    );
  });
});
