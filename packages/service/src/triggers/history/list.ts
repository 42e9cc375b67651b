/** Reads the history of schedules in the form of the API. A fire is one time of a schedule, or one start by hand. */
import { maxLastFires } from '@runyard/contract/limits';
import type {
  FireOutcome,
  ListScheduleFiresQuery,
  ListScheduleFiresResponse,
  ScheduleFire,
} from '@runyard/contract/schedules/schedules';
import { type CursorSigner, listIdentity, readCursor, writeCursor } from '../../platform/store/cursor.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  defineStatement,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';
import type { RunActor } from '../../team/access/actor.ts';
import { readProfiles } from '../../team/access/profiles.ts';

const row = {
  id: uuid,
  due_at: nullable(timestamp),
  fired_at: timestamp,
  outcome: text<FireOutcome>(),
  run_id: nullable(uuid),
  reason: nullable(text()),
  starter_kind: nullable(text<RunActor['kind']>()),
  starter_uid: nullable(text()),
};
const columns = Object.keys(row).join(', ');

const readPage = defineStatement({
  name: 'read_starts_of_schedule',
  text: `SELECT ${columns} FROM starts WHERE schedule_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`,
  row,
});

const readPageOfAutomation = defineStatement({
  name: 'read_starts_of_automation',
  text: `
    SELECT f.*, s.trigger_name FROM schedules s CROSS JOIN LATERAL (
      SELECT ${columns} FROM starts WHERE schedule_id = s.id AND id < $2 ORDER BY id DESC LIMIT $3
    ) f WHERE s.automation_uid = $1 ORDER BY f.id DESC LIMIT $3`,
  row: { ...row, trigger_name: text() },
});

/** Reads the last starts of schedules. The index `starts_log` finds them directly, so the time does not depend on the size of the table. */
const readLast = defineStatement({
  name: 'read_last_starts_of_schedules',
  text: `
    SELECT f.*, i.schedule_id FROM unnest($1::uuid[]) AS i (schedule_id) CROSS JOIN LATERAL (
      SELECT ${columns} FROM starts WHERE schedule_id = i.schedule_id ORDER BY id DESC LIMIT $2
    ) f ORDER BY f.id DESC`,
  row: { ...row, schedule_id: uuid },
});

type FireRow = RowOf<typeof readPage> & { readonly trigger_name?: string };

/** Returns the last fires of each schedule, newest first: a map from the id of the schedule to at most `maxLastFires` fires. */
export async function readLastFires(
  db: Queryable,
  teamId: string,
  scheduleIds: readonly string[],
): Promise<ReadonlyMap<string, readonly ScheduleFire[]>> {
  const rows = await db.query(readLast, [scheduleIds, maxLastFires]);
  const fires = await toFires(db, teamId, rows);
  const found = new Map<string, ScheduleFire[]>(scheduleIds.map((id) => [id, []]));
  rows.forEach(({ schedule_id: id }, index) => {
    const fire = fires[index];
    if (fire) found.get(id)?.push(fire);
  });
  return found;
}

const greatestId = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** Returns one page of the fires of a schedule, newest first. Returns null if the cursor was made for another list. */
export const listFires = (
  db: Queryable,
  signer: CursorSigner,
  { id, team_id: teamId }: { readonly id: string; readonly team_id: string },
  query: ListScheduleFiresQuery,
): Promise<ListScheduleFiresResponse | null> =>
  listPage(db, signer, { teamId, list: ['schedule fires', id], query }, (before, limit) =>
    db.query(readPage, [id, before, limit]),
  );

/** Returns one page of the fires of all schedules of an automation, newest first. Returns null if the cursor was made for another list. */
export const listFiresOfAutomation = (
  db: Queryable,
  signer: CursorSigner,
  { uid, team_id: teamId }: { readonly uid: string; readonly team_id: string },
  query: ListScheduleFiresQuery,
): Promise<ListScheduleFiresResponse | null> =>
  listPage(db, signer, { teamId, list: ['fires of automation', uid], query }, (before, limit) =>
    db.query(readPageOfAutomation, [uid, before, limit]),
  );

interface Page {
  readonly teamId: string;
  /** Identifies the list, because a cursor works only for the list for which it was made. */
  readonly list: readonly string[];
  readonly query: ListScheduleFiresQuery;
}

async function listPage(
  db: Queryable,
  signer: CursorSigner,
  { teamId, list, query: { limit, cursor } }: Page,
  readRows: (before: string, limit: number) => Promise<FireRow[]>,
): Promise<ListScheduleFiresResponse | null> {
  const identity = listIdentity(list);
  const read = cursor === undefined ? undefined : readCursor(signer, identity, cursor);
  if (read?.ok === false) return null;
  const rows = await readRows(read?.position.id ?? greatestId, limit + 1);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const hasNext = rows.length > limit && last !== undefined;
  return {
    fires: await toFires(db, teamId, page),
    page_info: {
      has_next_page: hasNext,
      ...(hasNext ? { next_cursor: writeCursor(signer, identity, { value: null, id: last.id }) } : {}),
    },
  };
}

/** Converts rows to fires in the form of the API, in the order of `rows`. */
async function toFires(db: Queryable, teamId: string, rows: readonly FireRow[]): Promise<ScheduleFire[]> {
  const starterOf = ({ starter_kind: kind, starter_uid: uid }: FireRow) =>
    kind === null || uid === null ? null : { kind, uid };
  const starters = rows.map(starterOf).filter((starter) => starter !== null);
  const profileOf = await readProfiles(db, teamId, starters);
  return rows.map((row): ScheduleFire => {
    const starter = starterOf(row);
    return {
      id: row.id,
      ...(row.due_at === null ? {} : { due_at: row.due_at }),
      fired_at: row.fired_at,
      outcome: row.outcome,
      ...(row.run_id === null ? {} : { run_id: row.run_id }),
      ...(row.reason === null ? {} : { reason: row.reason }),
      ...(starter ? { started_by: profileOf(starter) } : {}),
      ...(row.trigger_name ? { schedule_name: row.trigger_name } : {}),
    };
  });
}
