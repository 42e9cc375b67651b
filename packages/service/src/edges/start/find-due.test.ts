import { randomUUIDv7 } from 'node:crypto';
import { expect, it, test } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { listDueLoops } from '../../../test/due-loops.ts';
import { openTestService } from '../../../test/service.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { makeFindDue } from './loops.ts';

const service = await openTestService();
const { db } = service.deps;
const loops = closeAtEnd(await listDueLoops(service));
const { runId } = await service.startExecution();
// Makes the service idle: no run waits for its search index, and the team's total includes the bytes of all runs.
await db.query('DELETE FROM run_search_waiting');
await db.query('DELETE FROM storage_changes');

class RolledBack extends Error {}

/**
 * Calls `prepare` in a transaction that is rolled back. Returns the loops that have work in this transaction. The transaction does not
 * check foreign keys.
 */
async function dueAfter(prepare: (tx: Queryable) => Promise<unknown>): Promise<string[]> {
  let names: string[] = [];
  const look = db.transaction(async (tx) => {
    await tx.query('SET LOCAL session_replication_role = replica');
    await prepare(tx);
    names = await loops.findNames(tx);
    throw new RolledBack();
  });
  await expect(look).rejects.toThrow(RolledBack);
  return names;
}

const setExecution = (columns: string) => `UPDATE executions SET ${columns} WHERE run_id = '${runId}'`;
const waitsForPlace = `phase = 'queued', waits_for_place = true, available_at = now() + interval '1 hour'`;
/** The waiting run is its own parent, so the case needs no second run. */
const childOfItself = (maxLive: number) => async (tx: Queryable) => {
  await tx.query(setExecution(waitsForPlace));
  await tx.query(
    `WITH request AS (UPDATE run_requests SET config = jsonb_build_object('child_runs', $2::jsonb) WHERE run_id = $1)
     UPDATE runs SET parent_run_id = id WHERE id = $1`,
    [runId, JSON.stringify({ max_live: maxLive })],
  );
};
const subscription = randomUUIDv7();
const subscribe = (tx: Queryable) =>
  tx.query(
    `INSERT INTO event_subscriptions (id, team_id, url, events, vault_key_id, sealed_secret)
     VALUES ($1, $2, 'https://hooks.example.com', '{run.created}', 'key', '')`,
    [subscription, service.teamId],
  );
const deliver = async (tx: Queryable, more: string) => {
  await subscribe(tx);
  await tx.query(`INSERT INTO event_deliveries (subscription_id, event, data) VALUES ($1, 'run.created', '{}')`, [
    subscription,
  ]);
  await tx.query(`UPDATE event_deliveries SET ${more}`);
};
const fire = (columns: string, values: string) =>
  `INSERT INTO starts (schedule_id, outcome, ${columns})
   SELECT id, ${values} FROM schedules`;

/** Inserts a schedule that is due in the given time. */
const schedule = (dueIn: string) => async (tx: Queryable) => {
  await tx.query(
    `INSERT INTO schedules (id, team_id, name, cron_schedule, timezone, anchor_at, prompt, overlap, enabled, next_run_at,
       creator_kind, creator_uid, editor_kind, editor_uid)
     VALUES ($1, $2, 'S', '@every 1h', 'UTC', now(), 'Do it.', 'skip', true, now() + interval '${dueIn}', 'user', 'u', 'user', 'u')`,
    [randomUUIDv7(), service.teamId],
  );
};
const automation = (tx: Queryable) =>
  tx.query(
    `INSERT INTO automations (uid, factory_uid, team_id, name, prompt, enabled, triggers, overlap, creator_kind, creator_uid, editor_kind, editor_uid)
     VALUES ('a', 'f', $1, 'A', 'Do it.', true, '[]', 'queue', 'user', 'u', 'user', 'u')`,
    [service.teamId],
  );
const source = (dueIn: string, claim: string) => `
  INSERT INTO factory_sources (factory_uid, team_id, owner, repo, folder, poll_interval_seconds, set_by_uid, due_at, claim, claimed_until)
  VALUES ('f', '${service.teamId}', 'o', 'r', '', 60, 'u', now() + interval '${dueIn}', ${claim})`;
const outage = (probeIn: string) => `
  INSERT INTO model_outages (provider, began_at, reason, next_probe_at) VALUES ('openai', now(), 'r', now() + interval '${probeIn}')`;
const request = (age: string) => `
  INSERT INTO open_model_requests (id, run_id, execution_id, accounts, reserved_usd, known_usage, service_instance_id, created_at)
  VALUES (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '{}', 0, '{}', gen_random_uuid(), now() - interval '${age}')`;

const identity = (checkIn: string) => `
  INSERT INTO sign_on_identities (id, issuer, subject, user_id, vault_key_id, confirmed_until, next_check_at)
  VALUES (gen_random_uuid(), 'https://id.example.com', 's', gen_random_uuid(), 'key', now(), now() + interval '${checkIn}')`;

const app = (polledAgo: string) => `
  INSERT INTO github_apps (uid, team_id, credential_id, host, app_id, slug, client_id, vault_key_id, sealed_secrets, polled_at)
  VALUES ('a', '${service.teamId}', gen_random_uuid(), 'h', 1, 's', 'c', 'k', '', now() - interval '${polledAgo}')`;
const installation = `
  INSERT INTO github_installations (uid, app_uid, team_id, installation_id, account_id, account_login, account_type, webhook_uid, factory_uid,
    subscription_id, claimed_by)
  VALUES ('i', 'a', '${service.teamId}', 1, 1, 'l', 'User', 'w', 'f', gen_random_uuid(), 'u')`;
const both = (first: string, second: string) => async (tx: Queryable) => {
  await tx.query(first);
  await tx.query(second);
};
const word = (dueIn: string) => `
  INSERT INTO github_words (place_id, run_id, comment_id, comment_kind, github_id, user_uid, next_attempt_at)
  VALUES (gen_random_uuid(), gen_random_uuid(), 1, 'issue', 1, 'u', now() + interval '${dueIn}')`;

const retry = (dueIn: string, handledAt = 'NULL') => `
  INSERT INTO run_retries (run_id, due_at, handled_at) VALUES ('${runId}', now() + interval '${dueIn}', ${handledAt})`;
const budgetRule = (isTold: boolean) =>
  `INSERT INTO notify_rules (team_id, rules, is_told) VALUES ('${service.teamId}', '[]', ${isTold})`;

const settling = 'starting what waited for the end of a run, and cancelling replaced runs';

type Prepare = string | ((tx: Queryable) => Promise<unknown>);

/** Each case prepares work and names the loops that must do this work. The list of loops is empty if the work is not due yet. */
const cases: readonly (readonly [what: string, prepare: () => Prepare, due: readonly string[]])[] = [
  ['a schedule whose time has come', () => schedule('-1 second'), ['firing schedules']],
  ['a schedule within the horizon of a round', () => schedule('1 second'), ['firing schedules']],
  ['a schedule of later', () => schedule('1 minute'), []],
  [
    'an App whose log was read a minute ago',
    () => both(app('1 minute'), installation),
    ['reading missed events of GitHub'],
  ],
  ['an App whose log was just read', () => both(app('1 second'), installation), []],
  ['an App without an installation', () => app('1 minute'), []],
  ['a comment for a run', () => word('0 s'), ['sending comments to runs']],
  ['a comment that waits for the end of a turn', () => word('20 s'), []],
  ['a failed run to repeat', () => retry('-1 second'), ['repeating failed runs']],
  ['a failed run to repeat later', () => retry('1 minute'), []],
  ['a failed run that was repeated', () => retry('-1 second', 'now()'), []],
  [
    'a failed run that was not counted',
    () => `INSERT INTO uncounted_failures (run_id) VALUES ('${runId}')`,
    ['counting failed runs of schedules and automations'],
  ],
  ['a budget that is no longer used up', () => budgetRule(true), ['notifying of used-up budgets']],
  ['a budget that is not used up', () => budgetRule(false), []],
  [
    'a fire that waits',
    () => async (tx) => {
      await schedule('1 hour')(tx);
      await tx.query(fire('due_at', `'waiting', now()`));
    },
    [settling],
  ],
  [
    'a fire that replaces a run',
    () => async (tx) => {
      await schedule('1 hour')(tx);
      await tx.query(fire('due_at, run_id, cancels_previous', `'started', now(), gen_random_uuid(), true`));
    },
    [settling],
  ],
  [
    'a start that waits',
    () => async (tx) => {
      await automation(tx);
      await tx.query(
        `INSERT INTO starts (automation_uid, webhook_uid, delivery_id, outcome) VALUES ('a', 'w', gen_random_uuid(), 'waiting')`,
      );
    },
    [settling],
  ],
  [
    'a start that replaces a run',
    () =>
      `INSERT INTO starts (automation_uid, webhook_uid, delivery_id, outcome, run_id, cancels_previous)
       VALUES ('a', 'w', gen_random_uuid(), 'started', gen_random_uuid(), true)`,
    [settling],
  ],
  ['a queued execution', () => setExecution(`phase = 'queued', available_at = now()`), ['assigning work']],
  [
    'a queued execution that pauses',
    () => setExecution(`phase = 'queued', available_at = now() + interval '1 hour'`),
    [],
  ],
  ['a child of a deleted run', () => setExecution(waitsForPlace), ['places of child runs']],
  ['a child whose parent has a free place', () => childOfItself(1), ['places of child runs']],
  ['a child whose parent has no free place', () => childOfItself(0), []],
  [
    'an assignment that no worker claimed',
    () => async (tx) => {
      await tx.query(setExecution(`phase = 'assigned', claim_deadline = now() - interval '1 second'`));
      await tx.query('UPDATE runs SET assignment_id = gen_random_uuid() WHERE id = $1', [runId]);
    },
    ['the reconciler'],
  ],
  [
    'an assignment with time left',
    () => setExecution(`phase = 'assigned', claim_deadline = now() + interval '1 hour'`),
    [],
  ],
  [
    'a lease that is over',
    () => setExecution(`phase = 'running', lease_until = now() - interval '1 second'`),
    ['the reconciler'],
  ],
  [
    'a deadline that has passed',
    () => setExecution(`phase = 'running', deadline_at = now() - interval '1 second'`),
    ['the reconciler'],
  ],
  ['a deadline of later', () => setExecution(`phase = 'running', deadline_at = now() + interval '1 hour'`), []],
  [
    'an idle time that is over',
    () => setExecution(`phase = 'idle', idle_until = now() - interval '1 second'`),
    ['the reconciler'],
  ],
  ['an idle time that is not over', () => setExecution(`phase = 'idle', idle_until = now() + interval '1 hour'`), []],
  [
    'a stop that is late',
    () => setExecution(`phase = 'stopping', stop_reason = 'ordered', stop_deadline = now() - interval '1 second'`),
    ['the reconciler'],
  ],
  [
    'a cancel that has not reached all runs',
    () => `UPDATE runs SET cascade_at = now() WHERE id = '${runId}'`,
    ['the reconciler'],
  ],
  ['a transcript in rows', () => setExecution(`phase = 'ended', transcript_bytes = 1`), ['composing transcripts']],
  [
    'a run without its words',
    () => `INSERT INTO run_search_waiting (run_ids) VALUES ('{${runId}}')`,
    ['the words of new runs'],
  ],
  [
    'a delivery that is due',
    () => (tx) => deliver(tx, 'next_attempt_at = now()'),
    ['delivering events', 'settling deliveries without their key'],
  ],
  [
    'a delivery whose next attempt is later',
    () => (tx) => deliver(tx, `next_attempt_at = now() + interval '1 minute'`),
    [],
  ],
  [
    'a delivery that could not be signed',
    () => (tx) => deliver(tx, `status = 'failed', unsigned_since = now()`),
    ['settling deliveries without their key'],
  ],
  ['a source that is due', () => source('-1 second', 'NULL, NULL'), ['syncing factories with their repositories']],
  ['a source of later', () => source('1 hour', 'NULL, NULL'), []],
  [
    'a source whose sync died',
    () => source('1 hour', `gen_random_uuid(), now() - interval '1 second'`),
    ['syncing factories with their repositories'],
  ],
  ['a provider to probe', () => outage('-1 second'), ['probing model providers']],
  ['a provider to probe later', () => outage('1 minute'), []],
  ['a model request of a dead process', () => request('2 minutes'), ['model requests of dead processes']],
  ['a young model request', () => request('1 second'), []],
  [
    'bytes that a team has stored',
    () => `INSERT INTO storage_changes (team_id, bytes) VALUES ('${service.teamId}', 1)`,
    ['the stored bytes of teams'],
  ],
  ['a person to confirm', () => identity('-1 second'), ['confirming people with their identity providers']],
  ['a person to confirm later', () => identity('1 minute'), []],
];

it('the query for due work finds nothing in an idle service', async () => {
  expect(await dueAfter(async () => undefined)).toEqual([]);
});

test.for(cases)('the query for due work finds the loops for %s', async ([, prepare, due]) => {
  const work = prepare();
  expect(await dueAfter((tx) => (typeof work === 'string' ? tx.query(work) : work(tx)))).toEqual([...due].sort());
});

it('this file has a case for each loop with due statements', () => {
  const tested = new Set(cases.flatMap(([, , due]) => due));
  expect([...loops.names].sort()).toEqual([...tested].sort());
});

it('the query for due work runs no statement if no loop has due statements', async () => {
  const query = () => Promise.reject(new Error('no statement is expected'));
  expect(await makeFindDue({ query }, [])()).toEqual([]);
});

/** Inserts 2,000 runs like the run of this file, each with a queued execution. */
const queueMany = () => `
  WITH made AS MATERIALIZED (SELECT gen_random_uuid() AS id, gen_random_uuid() AS execution FROM generate_series(1, 2000)), runs AS (
    INSERT INTO runs (id, team_id, state, title, model_id, harness, source, creator_kind, creator_uid, executor_kind, executor_uid,
      conversation_id, current_execution_id)
    SELECT made.id, team_id, 'QUEUED', title, model_id, harness, source, creator_kind, creator_uid, executor_kind, executor_uid,
      gen_random_uuid(), made.execution FROM runs r, made WHERE r.id = '${runId}')
  INSERT INTO executions (id, run_id, team_id, number, phase, pool)
  SELECT made.execution, made.id, team_id, 1, 'queued', pool FROM executions e, made WHERE e.run_id = '${runId}'`;

it('the query for due work stays cheap if its plan was made before 2,000 runs were queued', async () => {
  const found: unknown[] = [];
  await dueAfter(async (tx) => {
    await tx.query('SET LOCAL plan_cache_mode = force_generic_plan');
    await loops.findNames({
      query: async (statement: { readonly text: string }) => {
        await tx.query(`PREPARE due_before AS ${statement.text}`);
        await tx.query('EXECUTE due_before');
        await tx.query(queueMany());
        found.push(...(await tx.query('EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE due_before')));
        return [];
      },
    } as never);
  });
  const plan = JSON.stringify(found);
  const pages = Number(/"Shared Hit Blocks":(\d+)/.exec(plan)?.[1]);
  expect(pages).toBeGreaterThan(0);
  // If the plan read all executions once for each run, these would be more than 200,000 pages.
  expect(pages).toBeLessThan(3000);
}, 60_000);
