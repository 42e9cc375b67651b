/** Reads the history of schedules in the form of the API. A fire is one time of a schedule, or one start by hand. */
import { maxLastFires } from '@runyard/contract/limits';
import type {
  FireOutcome,
  ListScheduleFiresQuery,
  ListScheduleFiresResponse,
  ScheduleFire,
} from '@runyard/contract/schedules/schedules';
import { type CursorSigner, positionOfId, readPage } from '../../platform/store/cursor.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  defineStatement,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';
import { greatestUuid } from '../../platform/store/database/uuid.ts';
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

const readFires = defineStatement({
  name: 'read_starts_of_schedule',
  text: `
    SELECT ${columns} FROM starts WHERE schedule_id = $1 AND automation_uid IS NULL AND id < $2 ORDER BY id DESC LIMIT $3`,
  row,
});

const readFiresOfAutomation = defineStatement({
  name: 'read_starts_of_automation',
  text: `
    SELECT f.*, CASE WHEN s.automation_uid IS NULL THEN s.name ELSE s.trigger_name END AS schedule_name FROM (
      SELECT ${columns}, schedule_id FROM starts WHERE automation_uid = $1 AND schedule_id IS NOT NULL AND id < $2
      ORDER BY id DESC LIMIT $3
    ) f JOIN schedules s ON s.id = f.schedule_id ORDER BY f.id DESC`,
  row: { ...row, schedule_name: text() },
});

/** Reads the last starts of schedules. The index `starts_log` finds them directly, so the time does not depend on the size of the table. */
const readLast = defineStatement({
  name: 'read_last_starts_of_schedules',
  text: `
    SELECT f.*, i.schedule_id FROM unnest($1::uuid[]) AS i (schedule_id) CROSS JOIN LATERAL (
      SELECT ${columns} FROM starts WHERE schedule_id = i.schedule_id AND automation_uid IS NULL ORDER BY id DESC LIMIT $2
    ) f ORDER BY f.id DESC`,
  row: { ...row, schedule_id: uuid },
});

type FireRow = RowOf<typeof readFires> & { readonly schedule_name?: string };

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

/** Returns one page of the fires of a schedule, newest first. Returns null if the cursor was made for another list. */
export const listFires = (
  db: Queryable,
  signer: CursorSigner,
  { id, team_id: teamId }: { readonly id: string; readonly team_id: string },
  query: ListScheduleFiresQuery,
): Promise<ListScheduleFiresResponse | null> =>
  listPage(db, signer, { teamId, list: ['schedule fires', id], query }, (before, limit) =>
    db.query(readFires, [id, before, limit]),
  );

/** Returns one page of the starts of an automation by times of schedules, newest first. Returns null if the cursor was made for another list. */
export const listFiresOfAutomation = (
  db: Queryable,
  signer: CursorSigner,
  { uid, team_id: teamId }: { readonly uid: string; readonly team_id: string },
  query: ListScheduleFiresQuery,
): Promise<ListScheduleFiresResponse | null> =>
  listPage(db, signer, { teamId, list: ['fires of automation', uid], query }, (before, limit) =>
    db.query(readFiresOfAutomation, [uid, before, limit]),
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
  { teamId, list, query }: Page,
  readRows: (before: string, limit: number) => Promise<FireRow[]>,
): Promise<ListScheduleFiresResponse | null> {
  const found = await readPage(signer, query, {
    list,
    read: (after, count) => readRows(after?.id ?? greatestUuid, count),
    positionOf: positionOfId,
  });
  return found && { fires: await toFires(db, teamId, found.page), page_info: found.page_info };
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
      ...(row.schedule_name ? { schedule_name: row.schedule_name } : {}),
    };
  });
}
