/** Rows that are of no use after a fixed time, whatever is set. */
import type { Queryable } from '../store/database/database.ts';

const batchSize = 5000;

interface RowPolicy {
  readonly table: string;
  /** SQL over a row of the table; an index must answer it. */
  readonly isOver: string;
}

export const rowPolicies: readonly RowPolicy[] = [
  // The contract's 24 h; older ones are not looked at any more.
  { table: 'idempotency_keys', isOver: `created_at < now() - interval '24 hours'` },
  // Reported, but the URL for its bytes has expired long ago.
  { table: 'artifacts', isOver: `NOT is_ready AND created_at < now() - interval '24 hours'` },
  { table: 'snapshots', isOver: `NOT is_ready AND created_at < now() - interval '24 hours'` },
  // The log of deliveries, with its attempts, delivered or not. Their ids sort by time, so that the primary key finds the old ones.
  {
    table: 'event_deliveries',
    isOver: `id < (lpad(to_hex((extract(epoch FROM now() - interval '14 days') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid`,
  },
  // The newest that is older than the window of team streams (live/team-events.ts) is needed, older ones are not.
  { table: 'event_stream_marks', isOver: `marked_at < now() - interval '30 days'` },
  // Processes that died without a word.
  { table: 'upload_leases', isOver: `expires_at < now() - interval '1 hour'` },
  { table: 'service_instances', isOver: `seen_at < now() - interval '1 hour'` },
];

/** Deletes a batch; true where there may be more. */
export async function deleteOldRows(
  db: Queryable,
  { table, isOver }: RowPolicy,
): Promise<{ rows: number; more: boolean }> {
  const deleted = await db.query(
    `DELETE FROM ${table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM ${table} WHERE ${isOver} LIMIT ${batchSize})) AND ${isOver} RETURNING 1 AS one`,
  );
  return { rows: deleted.length, more: deleted.length === batchSize };
}
