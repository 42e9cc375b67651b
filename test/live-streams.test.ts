/**
 * Tests that each reader of an event stream gets each event once and in order, although the test closes connections of readers, kills
 * the service, and ends the database connection on which the service listens for events.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from '@runyard/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Queryable } from '../packages/service/src/platform/store/database/database.ts';
import { appendTimelineEvent } from '../packages/service/src/runs/executions/timeline/timeline.ts';
import { createTestDatabase, type TestDatabase } from '../packages/service/test/database.ts';
import { type CutOffReader, readCutOff } from './support/cut-off-reader.ts';
import { isLong } from './support/long.ts';
import { eventually, killHard, type System, startSystem } from './support/system.ts';

const scale = isLong ? 4 : 1;
const runCount = 3 * scale;
/** Number of readers that read the stream of a single run: two for each run. */
const readersOfRuns = 6 * scale;
const readersOfTeam = 2 * scale;
/** Number of concurrent writers. They must be several, so that transactions do not always end in the order of their numbers. */
const writers = 6 + 2 * (scale - 1);
const eventsOfWriter = 30 + 10 * (scale - 1);

interface Run {
  readonly id: string;
  readonly execution: string;
}

let database: TestDatabase;
let system: System;
beforeAll(async () => {
  database = await createTestDatabase({ maxConnections: writers + 2 });
  system = await startSystem({ workers: [], databaseUrl: database.url });
});
afterAll(async () => {
  await system?.stop();
  await database?.drop();
});

const word = {
  type: 'text',
  occurred_at: '2026-11-21T10:00:00Z',
  step_id: 's',
  message_id: 'm',
  role: 'assistant',
  text: 'word',
};

async function say(tx: Queryable, run: Run): Promise<void> {
  await tx.query(
    `WITH numbered AS (UPDATE runs SET event_seq = event_seq + 2 WHERE id = $1 RETURNING id, event_seq), told AS (
       INSERT INTO conversation_events (run_id, seq, execution_id, event)
       SELECT id, event_seq - n, $2, $3::jsonb FROM numbered, generate_series(0, 1) n)
     SELECT pg_notify('runyard_runs', id::text) FROM numbered`,
    [run.id, run.execution, JSON.stringify(word)],
  );
}

/**
 * Writes events in transactions of random duration. Some transactions get their transaction number long before they write an event.
 */
async function write(runs: readonly Run[]): Promise<void> {
  for (let n = 0; n < eventsOfWriter; n += 1) {
    const run = runs[Math.floor(Math.random() * runs.length)];
    if (!run) return;
    await database.db.transaction(async (tx) => {
      if (Math.random() < 0.5) await tx.query('SELECT pg_current_xact_id(), pg_sleep(random() * 0.05)');
      if (Math.random() < 0.3) await say(tx, run);
      await appendTimelineEvent(tx, { runId: run.id, executionId: run.execution, type: 'setup_step_started' });
      if (Math.random() < 0.3) await tx.query('SELECT pg_sleep(random() * 0.05)');
    });
    await delay(Math.random() * 60);
  }
}

const killListeners = () =>
  database.db.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND query ~ '^(LISTEN|SELECT 1$|SELECT count.pg_notify)'`,
  );

/** Returns the ids of all events of a run, in order. */
async function idsOf(run: Run): Promise<string[]> {
  const rows = await database.db.query<{ seq: number; is_double: boolean }>(
    `SELECT seq, event_type IS NOT NULL AND state IS NOT NULL AS is_double FROM run_events WHERE run_id = $1
     UNION ALL SELECT seq, false FROM conversation_events WHERE run_id = $1 ORDER BY seq`,
    [run.id],
  );
  return rows.flatMap(({ seq, is_double }) => (is_double ? [`${seq}.1`, `${seq}`] : [`${seq}`]));
}

/** Returns, for each run, the sequence numbers of its events in the order in which the team's stream sent them. */
function byRun(reader: CutOffReader): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const id of reader.ids) {
    const [, run = '', seq = ''] = /^\w+-\d+-(.{36})-(.*)$/.exec(id) ?? [];
    found.set(run, [...(found.get(run) ?? []), seq]);
  }
  return found;
}

test('the service gives every reader every event once and in order while it is killed and connections end', async () => {
  const runs: Run[] = [];
  const lifeMs = () => 20 + Math.random() ** 2 * 1500;
  const follow = (path: string) =>
    readCutOff({ url: () => `${system.baseUrl()}/api/v1${path}`, key: system.key, lifeMs });
  const teams = Array.from({ length: readersOfTeam }, () => follow('/agent/runs/events'));
  // Wait until each reader has received an id. If a connection broke before the first id, the reader would begin again at a later
  // event and miss events.
  await eventually('the beginning of each', async () => teams.every((reader) => reader.lastId() !== ''));
  for (let n = 0; n < runCount; n += 1) {
    const id = await system.createRun('Nobody takes this run.');
    const [row] = await database.db.query<{ execution: string }>(
      'SELECT current_execution_id AS execution FROM runs WHERE id = $1',
      [id],
    );
    runs.push({ id, execution: row?.execution ?? '' });
  }
  const at = (index: number) => runs[index % runs.length] as Run;
  const readers = Array.from({ length: readersOfRuns }, (_, index) => ({
    run: at(index),
    reader: follow(`/agent/runs/${at(index).id}/events`),
  }));
  const client = createClient({ baseUrl: system.baseUrl(), apiKey: system.key });
  const ofClient = (async () => {
    const ids: string[] = [];
    for await (const { id } of client.streamRunEvents(at(0).id)) ids.push(id);
    return ids;
  })();

  const writing = Promise.all(Array.from({ length: writers }, () => write(runs)));
  await delay(1_000);
  await killListeners();
  await delay(1_000);
  await killHard(system.service());
  await system.startService();
  await killListeners();
  await writing;

  for (const run of runs) await system.call('POST', `/agent/runs/${run.id}/cancel`);
  await Promise.all(readers.map(({ reader }) => reader.done));
  for (const { run, reader } of readers) expect(reader.ids).toEqual(await idsOf(run));
  expect(await ofClient).toEqual(await idsOf(at(0)));

  const rows = await database.db.query<{ run_id: string; ids: string[] }>(
    `SELECT run_id, array_agg(id ORDER BY seq, half) AS ids FROM run_events, LATERAL (
       SELECT seq::text AS id, 2 AS half UNION ALL SELECT seq || '.1', 1 WHERE event_type IS NOT NULL AND state IS NOT NULL) e
     GROUP BY run_id`,
  );
  const total = rows.reduce((sum, { ids }) => sum + ids.length, 0);
  for (const reader of teams) {
    await expect.poll(() => reader.ids.length).toBeGreaterThanOrEqual(total);
    reader.stop();
    await reader.done;
    const found = byRun(reader);
    for (const { run_id, ids } of rows) expect(found.get(run_id)).toEqual(ids);
    expect(reader.ids).toHaveLength(total);
  }
  const connections = [...teams, ...readers.map(({ reader }) => reader)].map((reader) => reader.connections());
  expect(Math.min(...connections)).toBeGreaterThan(3);
}, 240_000);
