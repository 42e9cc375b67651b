import type {
  FireOutcome,
  ListScheduleFiresQuery,
  ListScheduleFiresResponse,
  ScheduleFire,
} from '@runyard/contract/schedules';
import type { RunActor } from '../access/actor.ts';
import { readProfiles } from '../access/profiles.ts';
import type { RowRule } from '../domain.ts';
import type { Queryable } from '../store/database/database.ts';
import { defineStatement, nullable, text, timestamp, uuid } from '../store/database/statement.ts';
import { type CursorSigner, listIdentity, readCursor, writeCursor } from '../store/paging/cursor.ts';
import type { ScheduleRow } from './schedule-row.ts';

const readPage = defineStatement({
  name: 'read_schedule_fires',
  text: `
    SELECT id, due_at, fired_at, outcome, run_id, reason, starter_kind, starter_uid FROM schedule_fires
    WHERE schedule_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`,
  row: {
    id: uuid,
    due_at: nullable(timestamp),
    fired_at: timestamp,
    outcome: text<FireOutcome>(),
    run_id: nullable(uuid),
    reason: nullable(text()),
    starter_kind: nullable(text<RunActor['kind']>()),
    starter_uid: nullable(text()),
  },
});

/** Fires of more than 30 days ago. The ids sort by time, so the primary key finds them. */
export const oldFires: RowRule = {
  table: 'schedule_fires',
  isOver: `id < (lpad(to_hex((extract(epoch FROM now() - interval '30 days') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid`,
};

const greatestId = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** Returns one page of the fires of a schedule, newest first. Null: the cursor was made for another list. */
export async function listFires(
  db: Queryable,
  signer: CursorSigner,
  schedule: Pick<ScheduleRow, 'id' | 'team_id'>,
  { limit, cursor }: ListScheduleFiresQuery,
): Promise<ListScheduleFiresResponse | null> {
  const identity = listIdentity(['schedule fires', schedule.id]);
  const read = cursor === undefined ? undefined : readCursor(signer, identity, cursor);
  if (read?.ok === false) return null;
  const rows = await db.query(readPage, [schedule.id, read?.position.id ?? greatestId, limit + 1]);
  const page = rows.slice(0, limit);
  const starterOf = ({ starter_kind: kind, starter_uid: uid }: (typeof rows)[number]) =>
    kind === null || uid === null ? null : { kind, uid };
  const profileOf = await readProfiles(
    db,
    schedule.team_id,
    page.map(starterOf).filter((starter) => starter !== null),
  );
  const fires = page.map((row): ScheduleFire => {
    const starter = starterOf(row);
    return {
      id: row.id,
      ...(row.due_at === null ? {} : { due_at: row.due_at }),
      fired_at: row.fired_at,
      outcome: row.outcome,
      ...(row.run_id === null ? {} : { run_id: row.run_id }),
      ...(row.reason === null ? {} : { reason: row.reason }),
      ...(starter ? { started_by: profileOf(starter) } : {}),
    };
  });
  const last = page.at(-1);
  const hasNext = rows.length > limit && last !== undefined;
  return {
    fires,
    page_info: {
      has_next_page: hasNext,
      ...(hasNext ? { next_cursor: writeCursor(signer, identity, { value: null, id: last.id }) } : {}),
    },
  };
}
