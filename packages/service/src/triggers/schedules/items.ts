import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import type { Queryable } from '../../platform/store/database/database.ts';
import { readRulesOfOwners } from '../../runs/inbox/rules.ts';
import { scopeOf } from '../../team/access/ownership.ts';
import { readProfiles } from '../../team/access/profiles.ts';
import { readEnvironmentConfigs } from '../../team/environments/named.ts';
import { executorOfSchedule, ownerOfSchedule, type ScheduleRow, timesOf } from './schedule-row.ts';
import { nextTimes, type Times } from './times/next-time.ts';

/** The team that owns the schedules. */
export interface ScheduleContext {
  readonly teamId: string;
  readonly teamUid: string;
}

const upcomingCount = 5;

/** Returns schedules in the form of the API, in the order of `rows`. `detail`: the result contains the next times of each schedule. */
export async function toItems(
  db: Queryable,
  { teamId, teamUid }: ScheduleContext,
  rows: readonly ScheduleRow[],
  detail = false,
): Promise<ScheduledAgentItem[]> {
  const uids = rows.map((row) => row.agent_config?.environment_id).filter((uid) => uid !== undefined);
  const environments = await readEnvironmentConfigs(db, teamId, [...new Set(uids)]);
  const creatorOf = (row: ScheduleRow) => ({ kind: row.creator_kind, uid: row.creator_uid });
  const editorOf = (row: ScheduleRow) => ({ kind: row.editor_kind, uid: row.editor_uid });
  const profileOf = await readProfiles(
    db,
    teamId,
    rows.flatMap((row) => [creatorOf(row), editorOf(row), executorOfSchedule(row)]),
  );
  const scheduleIds = rows.map(({ id }) => id);
  const rules = await readRulesOfOwners(db, teamId, { scheduleIds });
  return rows.map((row) => {
    const notify = rules.get(row.id);
    const environment = environments.get(row.agent_config?.environment_id ?? '');
    return {
      id: row.id,
      name: row.name,
      cron_schedule: row.cron_schedule,
      enabled: row.enabled,
      prompt: row.prompt,
      created_at: row.created_at,
      updated_at: row.updated_at,
      ...(row.agent_config ? { agent_config: row.agent_config } : {}),
      ...(environment ? { environment } : {}),
      history: { last_ran: row.last_ran_at, next_run: row.next_run_at },
      ...(detail ? { upcoming_runs: upcomingOf(row) } : {}),
      last_spawn_error: row.last_spawn_error,
      ...(row.agent_uid === null ? {} : { agent_uid: row.agent_uid }),
      timezone: row.timezone,
      overlap: row.overlap,
      ...(row.max_live_runs === null ? {} : { max_live_runs: row.max_live_runs }),
      metadata: row.metadata,
      ...(notify ? { notify } : {}),
      ...(row.mode === null ? {} : { mode: row.mode }),
      scope: scopeOf(ownerOfSchedule(row), teamUid),
      created_by: profileOf(creatorOf(row)),
      updated_by: profileOf(editorOf(row)),
      executor: profileOf(executorOfSchedule(row)),
    };
  });
}

/** Returns the stored next time of a schedule, which may already be due, and the times that follow it. */
function upcomingOf(row: ScheduleRow): string[] {
  if (row.next_run_at === null) return [];
  return [row.next_run_at, ...upcomingTimes(timesOf(row), Date.parse(row.next_run_at), upcomingCount - 1)];
}

/** Returns the next `count` times after the instant `afterMs`, which is in milliseconds since 1970. */
export const upcomingTimes = (times: Times, afterMs: number, count = upcomingCount): string[] =>
  nextTimes(times, afterMs, count).map((time) => new Date(time).toISOString());
