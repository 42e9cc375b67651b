import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { createEmptyDatabase } from '../../../test/database.ts';
import { openTestExecutions, type TestExecutions } from '../../../test/executions.ts';
import { appendTimelineEvent } from '../../runs/executions/timeline/timeline.ts';
import { leave } from './feed.ts';
import { eventsOfRuns } from './team-events.ts';
import { openTeamFeeds, type TeamFeeds } from './team-feeds.ts';

let t: TestExecutions;
let feeds: TeamFeeds;
/** Number of answered reads of new events. */
let reads = 0;
/** While set, answers wait until this promise resolves. */
let hold: Promise<void> | undefined;
beforeEach(async () => {
  t = closeAtEnd(await openTestExecutions());
  const { db, log, notices } = t.deps;
  const counting = new Proxy(db, {
    get: (target, name) =>
      name !== 'query'
        ? Reflect.get(target, name)
        : async (...given: Parameters<typeof db.query>) => {
            const rows = await target.query(...given);
            if (typeof given[0] !== 'string' && given[0].name === 'read_team_events') {
              reads += 1;
              await hold;
            }
            return rows;
          },
  });
  feeds = await openTeamFeeds({ db: counting, log }, eventsOfRuns(notices));
});
afterEach(async () => {
  feeds.stop();
});

/** Returns the ids of the events in the team's stream after an id, without the epoch and the transaction. */
async function follow(lastId?: string) {
  const start = await feeds.find(lastId);
  if (start.kind !== 'at') throw new Error(start.kind);
  const ids: string[] = [];
  const outlet = {
    write: (bytes: Buffer) => {
      for (const [, id = ''] of String(bytes).matchAll(/^id: (.*)\nevent/gm)) ids.push(id);
      return true;
    },
    end: () => undefined,
    cut: () => undefined,
  };
  feeds.open(t.teamId, start, outlet);
  return { ids, events: () => ids.map((id) => id.split('-').slice(2).join('-')) };
}

async function executionOf(runId: string): Promise<string> {
  const [row] = await t.deps.db.query<{ id: string }>('SELECT current_execution_id AS id FROM runs WHERE id = $1', [
    runId,
  ]);
  return row?.id ?? '';
}

const append = async (runId: string, db: Parameters<typeof appendTimelineEvent>[0] = t.deps.db) =>
  appendTimelineEvent(db, { runId, executionId: await executionOf(runId), type: 'setup_step_started' });

/** Opens a transaction that has a transaction number. The caller commits it later. */
async function openTransaction() {
  const client = await t.deps.db.pool.connect();
  await client.query('BEGIN; SELECT pg_current_xact_id()');
  return {
    append: async (runId: string) => {
      const executionId = await executionOf(runId);
      await client.query(
        `WITH n AS (UPDATE runs SET event_seq = event_seq + 1 WHERE id = $1 RETURNING event_seq)
         INSERT INTO run_events (run_id, seq, event_type, execution_number) SELECT $1, event_seq, 'setup_step_started', 1 FROM n`,
        [runId],
      );
      return executionId;
    },
    commit: async () => {
      await client.query('COMMIT');
      client.release();
    },
  };
}

test('a team stream sends an event that is committed after later events, both to connected and to reconnecting readers', async () => {
  const [first, second] = [await t.newRun(), await t.newRun()];
  const reader = await follow();
  const late = await openTransaction();
  await late.append(first);
  await append(second);
  // Wait for two reads. The first read may have begun before the event existed, but the second read began later.
  const before = reads;
  await vi.waitFor(() => expect(reads).toBeGreaterThan(before + 1), { timeout: 60_000 });
  expect(reader.ids).toEqual([]);
  await late.commit();
  const expected = [`${first}-2`, `${second}-2`];
  await vi.waitFor(() => expect(reader.events().sort()).toEqual([...expected].sort()), { timeout: 60_000 });
  for (const [index, id] of reader.ids.entries()) {
    const back = await follow(id);
    await vi.waitFor(() => expect(back.ids).toEqual(reader.ids.slice(index + 1)), { timeout: 60_000 });
  }
});

test("a team stream keeps the order of a run's events when an older transaction writes later", async () => {
  const run = await t.newRun();
  const reader = await follow();
  const older = await openTransaction();
  await append(run);
  await older.append(run);
  await older.commit();
  await append(run);
  await vi.waitFor(() => expect(reader.events()).toEqual([`${run}-2`, `${run}-3`, `${run}-4`]), { timeout: 60_000 });
});

test('a transaction in another database of the server does not delay a team stream for long', async () => {
  const other = await createEmptyDatabase();
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: other.url });
  await client.connect();
  try {
    await client.query('BEGIN; SELECT pg_current_xact_id()');
    const before = await t.newRun();
    const reader = await follow();
    const run = await t.newRun();
    await vi.waitFor(() => expect(reader.events()).toEqual([`${run}-1.1`, `${run}-1`]), { timeout: 60_000 });
    expect(reader.events()).not.toContain(`${before}-1`);
  } finally {
    await client.end();
    await other.drop();
  }
});

test('a team stream that begins at an earlier position than the other streams gets all events', async () => {
  const run = await t.newRun();
  const start = await feeds.find(undefined);
  if (start.kind !== 'at') throw new Error(start.kind);
  const seen: string[] = [];
  const outlet = { write: (bytes: Buffer) => seen.push(String(bytes)) > 0, end: () => undefined, cut: () => undefined };
  const other = feeds.open(t.teamId, start, { ...outlet, write: () => true });
  await append(run);
  await vi.waitFor(() => expect(other.position.xact).toBeGreaterThan(start.position.xact), { timeout: 60_000 });
  // Begin a read from the position of the other stream, and hold its answer back.
  const { promise, resolve } = Promise.withResolvers<void>();
  hold = promise;
  const before = reads;
  await append(run);
  await vi.waitFor(() => expect(reads).toBeGreaterThan(before), { timeout: 60_000 });
  leave(other);
  feeds.open(t.teamId, start, outlet);
  hold = undefined;
  resolve();
  const ids = () => seen.flatMap((text) => [...text.matchAll(/^id: .*-(\d+)\nevent/gm)].map(([, seq]) => seq));
  await vi.waitFor(() => expect(ids()).toEqual(['2', '3']), { timeout: 60_000 });
});

test('a team stream reads many pages after an old id while other streams get new events', async () => {
  const run = await t.newRun();
  const reader = await follow();
  for (let n = 0; n < 450; n += 1) await append(run);
  await vi.waitFor(() => expect(reader.ids).toHaveLength(450), { timeout: 60_000 });
  const back = await follow(reader.ids[0]);
  await vi.waitFor(() => expect(back.ids).toEqual(reader.ids.slice(1)), { timeout: 60_000 });
});
