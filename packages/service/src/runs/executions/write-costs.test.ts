/** Counts what the state changes of a run write, so that it does not rise unnoticed (docs/decisions/run-list.md). */
import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { openTestExecutions } from '../../../test/executions.ts';
import { applyAgentEvents } from '../harness-support/events/apply-agent-events.ts';
import { endSandbox } from './reconcile/sandbox-end.ts';
import { authenticateRunToken } from './run-tokens/sessions.ts';
import { claim, start, succeed } from './transitions/transitions.ts';

const t = closeAtEnd(await openTestExecutions());

const tables = ['runs', 'run_requests', 'executions', 'run_events'];

interface Written {
  /** Bytes of PostgreSQL's log, without full pages. */
  readonly bytes: number;
  /** Entries of indexes. All values of a run in one GIN index count as one entry. */
  readonly entries: number;
  readonly byRelation: Record<string, string>;
}

/** Returns what `work` writes to the tables, by the records of PostgreSQL's log. */
async function written(work: () => Promise<void>): Promise<Written> {
  const { db } = t.deps;
  const now = async () => (await db.query<{ lsn: string }>('SELECT pg_current_wal_insert_lsn()::text AS lsn'))[0]?.lsn;
  const from = await now();
  await work();
  // The log must be flushed to be read.
  await db.query(`SELECT pg_logical_emit_message(false, 'counted', '', true)`);
  const to = await now();
  const rows = await db.query<{ name: string; bytes: number; entries: number }>(
    `SELECT c.relname AS name, sum(b.record_length - coalesce(b.block_fpi_length, 0))::int AS bytes,
       count(*) FILTER (WHERE resource_manager = 'Btree' AND (record_type LIKE 'INSERT%' OR record_type LIKE 'SPLIT%') OR resource_manager = 'Gin'
         AND record_type IN ('UPDATE_META_PAGE', 'INSERT'))::int AS entries
     FROM (SELECT DISTINCT ON (start_lsn) * FROM pg_get_wal_block_info($1, $2) ORDER BY start_lsn, block_id) b
     JOIN pg_class c ON pg_relation_filenode(c.oid) = b.relfilenode LEFT JOIN pg_index i ON i.indexrelid = c.oid
     WHERE b.reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND coalesce(i.indrelid, c.oid) = ANY ($3::regclass[])
     GROUP BY 1 ORDER BY 1`,
    [from, to, tables],
  );
  return {
    bytes: rows.reduce((sum, row) => sum + row.bytes, 0),
    entries: rows.reduce((sum, row) => sum + row.entries, 0),
    byRelation: Object.fromEntries(
      rows.map(({ name, bytes, entries }) => [name, `${bytes} bytes, ${entries} entries`]),
    ),
  };
}

const event = (seq: number): AgentEvent => ({
  seq,
  occurred_at: '2026-01-02T03:04:05.000Z',
  type: 'text',
  step_id: 's',
  message_id: 'm',
  role: 'assistant',
  text: 'A text. ',
});

async function wholeRun(connectionId: string): Promise<void> {
  const { deps } = t;
  await t.newRun({ name: 'nightly', metadata: { repository: 'owner/repository', ticket: 'T-1' } });
  const assignment = await t.assign(connectionId);
  if (!assignment) throw new Error('nothing was assigned');
  const { runId, executionId, assignmentId, runToken } = assignment;
  const target = { runId, executionId };
  await claim(deps.db, { ...target, args: { assignment_id: assignmentId, lease_seconds: 60 } });
  await start(deps.db, { ...target, payload: { harness: 'oz', model_id: 'runbook' } });
  const session = await authenticateRunToken(deps.db, runToken);
  if (!session) throw new Error('the token opens nothing');
  for (const seq of [1, 3]) await applyAgentEvents(deps, session, [event(seq), event(seq + 1)]);
  await succeed(deps.db, { ...target, args: { idle_seconds: 0, stop_seconds: 10 } });
  await endSandbox(deps, executionId, { kind: 'exited', message: 'The agent has exited.', exitCode: 0 });
}

test('the state changes of a run write at most 9 KB of log and 40 index entries', async ({ skip }) => {
  const [server] = await t.deps.db.query<{ version: number }>(
    "SELECT current_setting('server_version_num')::int AS version",
  );
  if (server === undefined || server.version < 170_000) skip('older servers show fewer records of their log');
  await t.deps.db.query('CREATE EXTENSION IF NOT EXISTS pg_walinspect');
  const connection = await t.newConnection();
  // The pages of new tables are empty, and their indexes have few pages.
  for (let n = 0; n < 10; n += 1) await wholeRun(connection);
  const runs = 5;
  const all = await written(async () => {
    for (let n = 0; n < runs; n += 1) await wholeRun(connection);
  });
  expect(all.bytes / runs, JSON.stringify(all.byRelation)).toBeLessThan(9 * 1024);
  expect(all.entries / runs, JSON.stringify(all.byRelation)).toBeLessThanOrEqual(40);
});
