/** Reads how the runs of a schedule or an automation ended. */
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, text, uuid } from '../../platform/store/database/statement.ts';

/** Number of the last starts that are read. */
const lastStarts = 100;

/**
 * Reads the runs of the last starts of an owner that have ended well or badly, the last end first. Cancelled runs do not count. $3: starts
 * before this time do not count, because the owner was changed or resumed after them.
 */
const define = (owner: string, isOwner: string) =>
  defineStatement({
    name: `read_ended_starts_of_${owner}`,
    text: `
      SELECT r.id, r.state FROM (SELECT s.run_id FROM starts s WHERE ${isOwner} AND s.fired_at >= $2 ORDER BY s.id DESC LIMIT ${lastStarts}) s
      JOIN runs r ON r.id = s.run_id WHERE r.state IN ('SUCCEEDED', 'FAILED', 'ERROR') AND r.ended_at IS NOT NULL
      ORDER BY r.ended_at DESC, r.id DESC`,
    row: { id: uuid, state: text<'SUCCEEDED' | 'FAILED' | 'ERROR'>() },
  });
const ofSchedule = define('schedule', 's.schedule_id = $1::uuid AND s.automation_uid IS NULL');
const ofAutomation = define('automation', 's.automation_uid = $1');

/**
 * Returns how many runs of an owner had failed in a row when this run ended, with this run: 1 if the run before it succeeded. Returns 0 if
 * this run is none of the last starts of the owner, or is not FAILED or in ERROR any more.
 */
export async function countFailedInRow(
  db: Queryable,
  owner: { readonly kind: 'schedule' | 'automation'; readonly id: string; readonly since: string },
  runId: string,
): Promise<number> {
  const statement = owner.kind === 'schedule' ? ofSchedule : ofAutomation;
  const ended = await db.query(statement, [owner.id, owner.since]);
  const from = ended.findIndex(({ id }) => id === runId);
  if (from < 0) return 0;
  const before = ended.slice(from);
  const lastSuccess = before.findIndex(({ state }) => state === 'SUCCEEDED');
  return lastSuccess < 0 ? before.length : lastSuccess;
}
