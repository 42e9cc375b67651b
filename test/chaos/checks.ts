/**
 * Checks of the promises that the service makes to its clients. Each check reads rows of the database and the answers that the clients
 * received. Each statement in `plants` puts a fault into the database that breaks the promise, and is rolled back. A check that does
 * not find this fault proves nothing.
 */
import { type Check, firstRun, lastRun, ofRows, rowsOf } from './check.ts';

const created = `metadata ? 'chaos'`;

const creates: Check = {
  promise: 'each acknowledged create has one run, and a create whose client gave up at most one',
  find: async (db, seen) => {
    const rows = await rowsOf<{ id: string; tag: string }>(
      db,
      `SELECT id, metadata ->> 'chaos' AS tag FROM runs WHERE ${created}`,
    );
    const byTag = Map.groupBy(rows, ({ tag }) => tag);
    const faults: string[] = [];
    for (const [tag, runId] of seen.creates)
      if (byTag.get(tag)?.length !== 1 || byTag.get(tag)?.[0]?.id !== runId)
        faults.push(`${tag}: ${JSON.stringify(byTag.get(tag))} for ${runId}`);
    for (const [tag, found] of byTag)
      if (!seen.creates.has(tag) && (found.length > 1 || !seen.givenUp.has(tag)))
        faults.push(`${tag}: ${found.length} runs, not acknowledged`);
    return { count: seen.creates.size + seen.givenUp.size, faults };
  },
  plants: [
    `UPDATE runs SET metadata = metadata - 'chaos' WHERE id = ${firstRun(created)}`,
    `UPDATE runs SET metadata = (SELECT metadata FROM runs WHERE id = ${firstRun(created)}) WHERE id = ${lastRun(`NOT (${created})`)}`,
  ],
};

const deliveries: Check = {
  promise: 'each acknowledged delivery is accepted once and has one run with its payload',
  find: async (db, seen) => {
    const rows = await rowsOf<{ id: string; identity: string; runs: number }>(
      db,
      `SELECT d.id, d.identity, (SELECT count(*) FROM runs r JOIN starts s ON s.run_id = r.id AND s.delivery_id = d.id
         JOIN attachments a ON a.run_id = r.id AND a.content = d.payload WHERE r.metadata ->> 'delivery_id' = d.id::text) AS runs
       FROM webhook_deliveries d WHERE d.label = 'ACCEPTED'`,
    );
    const [all] = await rowsOf<{ runs: number }>(
      db,
      `SELECT count(*) AS runs FROM runs WHERE metadata ->> 'automation_id' = $1`,
      seen.automation,
    );
    const byIdentity = Map.groupBy(rows, ({ identity }) => identity);
    const faults = rows.filter(({ runs }) => runs !== 1).map(({ id, runs }) => `delivery ${id} has ${runs} runs`);
    for (const [identity, found] of byIdentity)
      if (found.length > 1) faults.push(`${identity} was accepted ${found.length} times`);
    for (const identity of seen.deliveries.keys()) if (!byIdentity.has(identity)) faults.push(`${identity} was lost`);
    if (all?.runs !== rows.length) faults.push(`${all?.runs} runs for ${rows.length} deliveries`);
    return { count: seen.deliveries.size, faults };
  },
  plants: [
    `UPDATE runs SET metadata = metadata - 'delivery_id' WHERE id = ${firstRun(`metadata ? 'delivery_id'`)}`,
    `UPDATE runs SET metadata = (SELECT metadata FROM runs WHERE id = ${firstRun(`metadata ? 'delivery_id'`)}) WHERE id = ${lastRun(created)}`,
    `UPDATE webhook_deliveries SET label = 'DUPLICATE' WHERE id = (SELECT id FROM webhook_deliveries WHERE label = 'ACCEPTED' LIMIT 1)`,
  ],
};

const followups: Check = {
  promise: 'each acknowledged follow-up is there once, and an agent took it unless its run failed or was cancelled',
  find: async (db, seen) => {
    const rows = await rowsOf<{ run_id: string; message: string; taken: boolean; state: string }>(
      db,
      'SELECT f.run_id, f.message, f.taken_at IS NOT NULL AS taken, r.state FROM followups f JOIN runs r ON r.id = f.run_id',
    );
    const faults = [...seen.followups].flatMap(([message, runId]) => {
      const found = rows.filter((row) => row.message === message && row.run_id === runId);
      const [one] = found;
      if (one === undefined || found.length > 1) return [`${message}: ${found.length} rows`];
      return one.taken || one.state !== 'SUCCEEDED' ? [] : [`${message} of ${runId} was not taken`];
    });
    if (rows.length !== seen.followups.size) faults.push(`${rows.length} rows for ${seen.followups.size} follow-ups`);
    return { count: seen.followups.size, faults };
  },
  plants: [`UPDATE followups SET message = 'lost' WHERE id = (SELECT id FROM followups LIMIT 1)`],
};

/** The commands of a follow-up read a file that the first turn of the run wrote (`load.ts`), and the run fails without this file. */
const withStoredFiles = `EXISTS (SELECT FROM executions e WHERE e.run_id = r.id AND e.id <> r.current_execution_id
     AND e.workspace_blob IS NOT NULL AND NOT e.workspace_is_checkpoint)`;

const files = ofRows(
  'a follow-up finds the files that an earlier execution of the run stored at the end of a turn',
  `SELECT r.state = 'FAILED' AS is_fault, r.id || ' did not find the files of its earlier execution' AS line
   FROM runs r JOIN followups f ON f.run_id = r.id WHERE ${withStoredFiles}`,
  [
    `UPDATE runs SET state = 'FAILED' WHERE id =
       (SELECT r.id FROM runs r JOIN followups f ON f.run_id = r.id WHERE r.state = 'SUCCEEDED' AND ${withStoredFiles} LIMIT 1)`,
  ],
);

const cancels = ofRows(
  'each acknowledged cancel ended its run',
  `SELECT r.state <> 'CANCELLED' AND NOT EXISTS (SELECT FROM followups f WHERE f.run_id = r.id) AS is_fault, r.id || ' is ' || r.state AS line
   FROM runs r WHERE r.id = ANY ($1::uuid[])`,
  [`UPDATE runs SET state = 'SUCCEEDED' WHERE state = 'CANCELLED'`],
  (seen) => [[...seen.cancels]],
);

/** Selects the last fire of a schedule. */
const lastFire = 'SELECT id, schedule_id FROM starts WHERE schedule_id IS NOT NULL ORDER BY due_at DESC LIMIT 1';

/** Schedules of the load fire once a minute. Compares their fires with their times, from the creation until `settle` ends the schedules. */
const fires = ofRows(
  'each schedule fires once at each of its times, and each fire has one run',
  `WITH fires AS (
     SELECT s.schedule_id, due_at, min(outcome) AS outcome, count(*) AS fires, count(r.id) AS runs
     FROM starts s LEFT JOIN runs r ON r.id = s.run_id AND r.schedule_id = s.schedule_id
     WHERE s.schedule_id = ANY ($1::uuid[]) AND due_at IS NOT NULL GROUP BY s.schedule_id, due_at
   ), times AS (
     SELECT id AS schedule_id, due_at, (SELECT count(*) FROM runs r WHERE r.schedule_id = s.id) <>
       (SELECT sum(fires) FROM fires f WHERE f.schedule_id = s.id) AS is_unequal
     FROM unnest($1::uuid[], $2::timestamptz[]) AS s(id, first_at), generate_series(first_at,
       greatest($3::timestamptz, (SELECT max(due_at) FROM fires f WHERE f.schedule_id = s.id)), interval '1 minute') due_at
   )
   SELECT is_unequal IS NOT FALSE OR fires IS DISTINCT FROM 1 OR runs <> 1 OR outcome <> 'started' AS is_fault,
     schedule_id || ' at ' || due_at || ': ' || coalesce(fires, 0) || ' fires, ' || coalesce(outcome, 'not started') || ', ' || coalesce(runs, 0) || ' runs' AS line
   FROM times FULL JOIN fires USING (schedule_id, due_at)`,
  [
    `UPDATE runs SET schedule_id = NULL WHERE id = ${firstRun('schedule_id IS NOT NULL')}`,
    `UPDATE runs SET schedule_id = (SELECT schedule_id FROM runs WHERE schedule_id IS NOT NULL LIMIT 1) WHERE id = ${lastRun('schedule_id IS NULL')}`,
    `UPDATE starts SET due_at = due_at + interval '1 minute' WHERE id IN (SELECT DISTINCT ON (schedule_id) id FROM starts WHERE schedule_id IS NOT NULL ORDER BY schedule_id, due_at DESC)`,
    ...[lastFire, `SELECT id FROM starts WHERE schedule_id = (SELECT schedule_id FROM (${lastFire}) last)`].map(
      (fires) =>
        `WITH gone AS (DELETE FROM starts WHERE id IN (SELECT id FROM (${fires}) f) RETURNING run_id)
         UPDATE runs SET schedule_id = NULL WHERE id IN (SELECT run_id FROM gone)`,
    ),
  ],
  ({ schedules, schedulesEndedAt }) => [[...schedules.keys()], [...schedules.values()], schedulesEndedAt],
);

const overlaps = ofRows(
  'no execution of a run is claimed before the one before it has ended',
  `SELECT e.ended_at IS NULL OR e.ended_at > next.claimed_at AS is_fault,
     e.run_id || ': ' || e.number || ' ended ' || coalesce(e.ended_at::text, 'never') || ', the next one was claimed ' || next.claimed_at AS line
   FROM executions e JOIN executions next ON next.run_id = e.run_id AND next.number = e.number + 1 WHERE next.claimed_at IS NOT NULL`,
  [
    `UPDATE executions e SET ended_at = now() + interval '1 hour' WHERE EXISTS
       (SELECT FROM executions next WHERE next.run_id = e.run_id AND next.number = e.number + 1)`,
  ],
);

const starts = ofRows(
  'no execution starts its agent on a prompt twice',
  `SELECT count(*) > 1 AS is_fault, run_id || ', execution ' || execution_number || ': ' || count(*) AS line
   FROM run_events WHERE event_type = 'agent_started' GROUP BY run_id, execution_number`,
  [
    `INSERT INTO run_events (run_id, seq, event_type, execution_number)
     SELECT run_id, seq + 100000, event_type, execution_number FROM run_events WHERE event_type = 'agent_started' LIMIT 1`,
  ],
);

const terminal = `('SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED')`;

const ends = ofRows(
  'each run and each execution has ended, and the run has a last event with its state',
  `SELECT r.state NOT IN ${terminal} OR r.ended_at IS NULL OR r.in_sandbox OR EXISTS (SELECT FROM executions e WHERE e.run_id = r.id AND e.phase <> 'ended')
       OR r.state IS DISTINCT FROM (SELECT v.state FROM run_events v WHERE v.run_id = r.id AND v.state IS NOT NULL ORDER BY seq DESC LIMIT 1) AS is_fault,
     r.id || ' is ' || r.state || ': ' || (SELECT string_agg(e.number || ' ' || e.phase, ', ') FROM executions e WHERE e.run_id = r.id) AS line
   FROM runs r`,
  [
    `UPDATE executions SET phase = 'running' WHERE id = (SELECT id FROM executions LIMIT 1)`,
    `UPDATE runs SET state = 'ERROR' WHERE id = ${firstRun(`state = 'SUCCEEDED'`)}`,
    `UPDATE runs SET in_sandbox = true WHERE id = ${firstRun(`state = 'SUCCEEDED'`)}`,
  ],
);

const anotherEnd = `INSERT INTO run_events (run_id, seq, state) SELECT run_id, seq + 100000, state FROM run_events WHERE state = 'SUCCEEDED' LIMIT 1`;

const repeatedEnds = ofRows(
  'a run ends once for each time that it began',
  `SELECT before IN ${terminal} AND state IN ${terminal} AS is_fault, run_id || ': ' || before || ', then ' || state AS line
   FROM (SELECT run_id, state, lag(state) OVER (PARTITION BY run_id ORDER BY seq) AS before FROM run_events WHERE state IS NOT NULL) s`,
  [anotherEnd],
);

const announced: Check = {
  promise: 'each create and each end reached the subscriber, signed, under one id',
  find: async (db, seen) => {
    const expected = await rowsOf<{ run_id: string; seq: number; type: string }>(
      db,
      `SELECT run_id, seq, CASE WHEN state IN ${terminal} THEN 'run.ended' ELSE 'run.created' END AS type FROM run_events
       WHERE state IN ${terminal} OR seq = 1`,
    );
    const came = seen.receiver.received.map(({ id, body, verified }) => {
      const { type, data } = JSON.parse(body) as { type: string; data: { run_id: string; seq: number } };
      return { id, verified, event: `${type} of ${data.run_id}, ${data.seq}` };
    });
    const byEvent = Map.groupBy(came, ({ event }) => event);
    const faults = came.filter(({ verified }) => !verified).map(({ id }) => `${id} is not signed`);
    for (const [event, all] of byEvent)
      if (new Set(all.map(({ id }) => id)).size > 1) faults.push(`${event} has several ids`);
    const wanted = new Set(expected.map(({ run_id, seq, type }) => `${type} of ${run_id}, ${seq}`));
    for (const event of wanted) if (!byEvent.has(event)) faults.push(`${event} did not come`);
    for (const event of byEvent.keys()) if (!wanted.has(event)) faults.push(`${event} came and did not happen`);
    return { count: wanted.size, faults };
  },
  plants: [
    anotherEnd,
    `DELETE FROM run_events WHERE ctid = (SELECT ctid FROM run_events WHERE state = 'SUCCEEDED' LIMIT 1)`,
  ],
};

const streamed: Check = {
  promise: 'each reader of the stream gets each event once and in order',
  find: async (db, seen) => {
    const rows = await rowsOf<{ run_id: string; ids: string[] }>(
      db,
      `SELECT run_id, array_agg(id ORDER BY seq, half) AS ids FROM run_events, LATERAL (
         SELECT seq::text AS id, 2 AS half UNION ALL SELECT seq || '.1', 1 WHERE event_type IS NOT NULL AND state IS NOT NULL) e
       GROUP BY run_id`,
    );
    const faults: string[] = [];
    for (const [index, { ids }] of seen.readers.entries()) {
      const byRun = Map.groupBy(
        ids.flatMap((id) => parseId(id) ?? []),
        ({ run }) => run,
      );
      for (const row of rows) {
        const got = byRun.get(row.run_id)?.map(({ seq }) => seq) ?? [];
        if (got.join() !== row.ids.join()) faults.push(`reader ${index}, run ${row.run_id}: ${got} for ${row.ids}`);
      }
    }
    return { count: rows.reduce((sum, { ids }) => sum + ids.length, 0), faults };
  },
  plants: ['DELETE FROM run_events WHERE ctid = (SELECT ctid FROM run_events LIMIT 1)', anotherEnd],
};

function parseId(id: string): { readonly run: string; readonly seq: string } | undefined {
  const [, run, seq] = /^\w+-\d+-(.{36})-(\d+(?:\.1)?)$/.exec(id) ?? [];
  return run === undefined || seq === undefined ? undefined : { run, seq };
}

/**
 * For each table, a condition that matches rows with unfinished work. A process that dies leaves such rows, and other processes must finish
 * this work. So no row may match after a time without faults.
 */
const temporary: Readonly<Record<string, string>> = {
  starts: `outcome = 'waiting'`,
  event_deliveries: `status <> 'delivered'`,
  open_model_requests: 'true',
  upload_leases: 'expires_at > now()',
  followups: `execution_id IS NULL AND EXISTS (SELECT FROM runs r WHERE r.id = run_id AND r.state = 'SUCCEEDED')`,
};

const leftRows = ofRows(
  'no row waits for work that nobody does',
  Object.entries(temporary)
    .map(
      ([table, where]) =>
        `SELECT count(*) > 0 AS is_fault, '${table}: ' || count(*) AS line FROM ${table} WHERE ${where}`,
    )
    .join(' UNION ALL '),
  [
    `UPDATE event_deliveries SET status = 'pending', delivered_at = NULL WHERE id = (SELECT id FROM event_deliveries LIMIT 1)`,
  ],
);

export const checks: readonly Check[] = [
  creates,
  deliveries,
  fires,
  followups,
  files,
  cancels,
  overlaps,
  starts,
  ends,
  repeatedEnds,
  announced,
  streamed,
  leftRows,
];
