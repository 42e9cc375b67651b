import { randomUUIDv7 } from 'node:crypto';
import { ListRunsQuery } from '@runyard/contract/runs/run-list';
import type { RunItem } from '@runyard/contract/runs/runs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { isLong } from '../../../../../../test/support/long.ts';
import { createTestDatabase } from '../../../../test/database.ts';
import { insertTeam } from '../../../../test/executions.ts';
import { listRuns } from './list.ts';
import { indexRunWords } from './search-index.ts';

const database = closeAtEnd(await createTestDatabase());

const signer = { sign: () => 'signature', verify: () => true };

/** Generates a point in time from a small set, so that each point occurs more than once. The points differ by hours or by microseconds. */
const moment = fc
  .record({ hour: fc.nat(3), micros: fc.nat(2) })
  .map(({ hour, micros }) => `2026-03-01T0${hour}:59:59.99999${micros}Z`);
const someRun = fc.record({
  title: fc.constantFrom('a', 'B', 'ä', '', 'flaky test'),
  skill: fc.constantFrom(null, null, 'x', 'Y'),
  state: fc.constantFrom('QUEUED', 'FAILED', 'SUCCEEDED'),
  stage: fc.constantFrom('prod', 'test'),
  source: fc.constantFrom('API', 'CLI', 'WEBHOOK'),
  environment: fc.constantFrom(null, 'e'),
  createdAt: moment,
  updatedAt: moment,
});
type SomeRun = typeof someRun extends fc.Arbitrary<infer T> ? T : never;

const change = fc.oneof(
  fc.record({ do: fc.constant('insert' as const), run: someRun }),
  fc.record({ do: fc.constant('touch' as const), pick: fc.nat(), at: moment }),
  fc.record({ do: fc.constant('touch' as const), pick: fc.nat(), at: fc.constant('2026-05-05T00:00:00.000000Z') }),
  fc.record({ do: fc.constant('end' as const), pick: fc.nat() }),
  fc.record({ do: fc.constant('delete' as const), pick: fc.nat() }),
);
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

/** Each filter, with a function that returns whether a run matches the filter. */
const filters: [Record<string, unknown>, (run: SomeRun) => boolean][] = [
  [{}, () => true],
  [{ state: ['FAILED'] }, (run) => run.state === 'FAILED'],
  [{ state: ['FAILED', 'QUEUED'] }, (run) => run.state !== 'SUCCEEDED'],
  [{ metadata: { stage: 'prod' } }, (run) => run.stage === 'prod'],
  [{ metadata: { stage: 'prod', same: 'yes' } }, (run) => run.stage === 'prod'],
  [{ created_before: '2026-03-01T02:30:00Z' }, (run) => run.createdAt < '2026-03-01T02:30:00Z'],
  [{ created_after: '2026-03-01T01:30:00Z' }, (run) => run.createdAt > '2026-03-01T01:30:00Z'],
  [
    { state: ['FAILED', 'QUEUED'], metadata: { stage: 'prod' } },
    (run) => run.state !== 'SUCCEEDED' && run.stage === 'prod',
  ],
  [{ state: ['FAILED'], source: ['API'], creator: ['u'] }, (run) => run.state === 'FAILED' && run.source === 'API'],
  [
    { state: ['FAILED', 'QUEUED'], source: ['API', 'CUSTOM_WEBHOOK', 'WEBHOOK'] },
    (run) => run.state !== 'SUCCEEDED' && run.source !== 'CLI',
  ],
  [{ task_status: ['failed'], source: ['API'] }, (run) => run.state === 'FAILED' && run.source === 'API'],
  [{ task_status: ['running'], source: ['API', 'CLI'] }, (run) => run.state === 'QUEUED' && run.source !== 'WEBHOOK'],
  [
    { task_status: ['running', 'failed'], source: ['API', 'CLI'] },
    (run) => run.state !== 'SUCCEEDED' && run.source !== 'WEBHOOK',
  ],
  [
    { state: ['FAILED', 'QUEUED'], source: ['CLI'], metadata: { stage: 'prod' } },
    (run) => run.state !== 'SUCCEEDED' && run.source === 'CLI' && run.stage === 'prod',
  ],
  [{ environment_id: 'empty-environment' }, (run) => run.environment === null],
  [{ skill: 'x' }, (run) => run.skill === 'x'],
  [{ skill: 'x', environment_id: 'empty-environment' }, (run) => run.skill === 'x' && run.environment === null],
  [
    { metadata: { stage: 'prod' }, source: ['API'], created_after: '2026-03-01T01:30:00Z' },
    (run) => run.stage === 'prod' && run.source === 'API' && run.createdAt > '2026-03-01T01:30:00Z',
  ],
  [
    { execution_location: 'REMOTE', created_before: '2026-03-01T02:30:00Z' },
    (run) => run.createdAt < '2026-03-01T02:30:00Z',
  ],
  [{ q: 'flaky', state: ['FAILED'] }, (run) => run.title === 'flaky test' && run.state === 'FAILED'],
  [{ q: 'FLAKY' }, (run) => run.title === 'flaky test'],
  [{ q: 'flakey' }, (run) => run.title === 'flaky test'],
];

async function insert(teamId: string, run: SomeRun): Promise<string> {
  const id = randomUUIDv7();
  const [earlier, later] = [run.createdAt, run.updatedAt].sort();
  await database.db.query(
    `WITH request AS (INSERT INTO run_requests (run_id, prompt) VALUES ($1, 'p')), execution AS (
       INSERT INTO executions (id, run_id, team_id, number, phase, pool)
       VALUES ($1, $1, $2, 1, CASE $3 WHEN 'QUEUED' THEN 'queued' ELSE 'ended' END, ''))
     INSERT INTO runs (id, team_id, state, title, model_id, harness, creator_kind, creator_uid, executor_kind,
       executor_uid, conversation_id, current_execution_id, skill_spec, metadata, created_at, updated_at, source, environment_id)
     VALUES ($1, $2, $3, $4, 'runbook', 'oz', 'user', 'u', 'user', 'u', $1, $1, $5, $6, $7, $8, $9, $10)`,
    [
      id,
      teamId,
      run.state,
      run.title,
      run.skill,
      JSON.stringify({ stage: run.stage, same: 'yes' }),
      earlier,
      later,
      run.source,
      run.environment,
    ],
  );
  return id;
}

async function perform(teamId: string, change: Change, known: readonly string[], touched: Set<string>): Promise<void> {
  if (change.do === 'insert') {
    touched.add(await insert(teamId, change.run));
    return;
  }
  const id = known[change.pick % Math.max(1, known.length)];
  if (id === undefined) return;
  touched.add(id);
  if (change.do === 'delete') await database.db.query('DELETE FROM runs WHERE id = $1', [id]);
  if (change.do === 'end') await database.db.query(`UPDATE runs SET state = 'SUCCEEDED' WHERE id = $1`, [id]);
  if (change.do === 'touch') {
    await database.db.query('UPDATE runs SET updated_at = greatest(created_at, $2::timestamptz) WHERE id = $1', [
      id,
      change.at,
    ]);
  }
}

const sortValue = (run: RunItem, sortBy: ListRunsQuery['sort_by']): string =>
  sortBy === 'agent' ? (run.agent_skill?.name ?? '') : run[sortBy];

test('a list has each run that does not change on exactly one page and in the right position, even if other runs change meanwhile', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(someRun, { minLength: 1, maxLength: 14 }),
      fc.array(fc.array(change, { maxLength: 3 }), { maxLength: 8 }),
      fc.constantFrom('updated_at' as const, 'created_at' as const, 'title' as const, 'agent' as const),
      fc.constantFrom('asc' as const, 'desc' as const),
      fc.integer({ min: 1, max: 5 }),
      fc.constantFrom(...filters),
      async (runs, changes, sortBy, sortOrder, limit, [filter, isListed]) => {
        const teamId = await insertTeam(database);
        const context = { teamId, teamUid: 'x', baseUrl: '' };
        const initial: string[] = [];
        for (const run of runs) initial.push(await insert(teamId, run));
        while ((await indexRunWords(database.db, 1000)) > 0);
        const touched = new Set<string>();
        const seen: RunItem[] = [];
        let cursor: string | undefined;
        for (let page = 0; ; page += 1) {
          const query = ListRunsQuery.parse({ ...filter, limit, sort_by: sortBy, sort_order: sortOrder, cursor });
          const outcome = await listRuns(database.db, signer, context, query);
          if (outcome.kind !== 'ok') throw new Error(JSON.stringify(outcome));
          seen.push(...outcome.page.runs);
          cursor = outcome.page.page_info.next_cursor;
          if (cursor === undefined) break;
          for (const each of changes[page] ?? []) await perform(teamId, each, initial, touched);
        }
        const constant = seen.filter((run) => !touched.has(run.run_id));
        const expected = initial.filter((id, index) => !touched.has(id) && isListed(firstCreated(runs[index])));
        expect(constant.map((run) => run.run_id).sort()).toEqual([...expected].sort());
        // A run that changes meanwhile may be in two pages only if the list is sorted by the last change.
        if (sortBy !== 'updated_at') expect(new Set(seen.map((run) => run.run_id)).size).toBe(seen.length);
        expect(constant.map((run) => run.run_id)).toEqual(sorted(constant, sortBy, sortOrder));
      },
    ),
    { numRuns: isLong ? 300 : 75 },
  );
});

/** Returns the run as `insert` stores it, with a creation that is not after its change. */
function firstCreated(run: SomeRun | undefined): SomeRun {
  if (!run) throw new Error('there is no such run');
  const [createdAt = '', updatedAt = ''] = [run.createdAt, run.updatedAt].sort();
  return { ...run, createdAt, updatedAt };
}

/**
 * Returns ids in the order of the values, then of the ids. Runs without a skill come last. Compares bytes, like the collation "C" of
 * PostgreSQL.
 */
function sorted(runs: readonly RunItem[], sortBy: ListRunsQuery['sort_by'], order: 'asc' | 'desc'): string[] {
  const sign = order === 'asc' ? 1 : -1;
  const isEmpty = (run: RunItem) => sortBy === 'agent' && sortValue(run, sortBy) === '';
  return [...runs]
    .sort((a, b) => {
      if (isEmpty(a) !== isEmpty(b)) return isEmpty(a) ? 1 : -1;
      const byValue = Buffer.compare(Buffer.from(sortValue(a, sortBy)), Buffer.from(sortValue(b, sortBy)));
      return sign * (byValue || (a.run_id < b.run_id ? -1 : 1));
    })
    .map((run) => run.run_id);
}
