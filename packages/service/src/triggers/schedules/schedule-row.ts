import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RunMode } from '@runyard/contract/runs/message-origin';
import { parseExpression } from '@runyard/contract/schedules/cron-expression';
import type { OverlapPolicy } from '@runyard/contract/schedules/schedules';
import {
  boolean,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';
import type { RunActor } from '../../team/access/actor.ts';
import type { Owner } from '../../team/access/ownership.ts';
import type { Times } from './times/next-time.ts';

/** The columns of a schedule with their types, for statements that read schedules. */
export const scheduleRow = {
  id: uuid,
  team_id: uuid,
  /** The person who owns a personal schedule; null: the schedule belongs to the team. */
  user_uid: nullable(text()),
  /** The automation that has the schedule as a trigger; null: the schedule belongs to no automation. */
  automation_uid: nullable(text()),
  /** Name of the schedule in its automation; empty: the schedule has no name there. */
  trigger_name: nullable(text()),
  name: text(),
  cron_schedule: text(),
  timezone: text(),
  anchor_at: timestamp,
  prompt: text(),
  agent_config: nullable(json<AmbientAgentConfig>()),
  agent_uid: nullable(text()),
  mode: nullable(text<RunMode>()),
  metadata: json<Record<string, string>>(),
  overlap: text<OverlapPolicy>(),
  max_live_runs: nullable(integer),
  enabled: boolean,
  next_run_at: nullable(timestamp),
  last_due_at: nullable(timestamp),
  last_ran_at: nullable(timestamp),
  last_spawn_error: nullable(text()),
  spawn_failures: integer,
  creator_kind: text<RunActor['kind']>(),
  creator_uid: text(),
  editor_kind: text<RunActor['kind']>(),
  editor_uid: text(),
  /** The runs of the schedule act as this person or agent. An edit does not change it. */
  executor_kind: text<RunActor['kind']>(),
  executor_uid: text(),
  /** Present revision of the schedule. Runs record it, because they execute the schedule's content. */
  revision: integer,
  created_at: timestamp,
  updated_at: timestamp,
};

export const ownerOfSchedule = ({
  team_id: teamId,
  user_uid: userUid,
}: Pick<ScheduleRow, 'team_id' | 'user_uid'>): Owner => (userUid === null ? { teamId } : { teamId, userUid });

/** Returns the person or agent for whom the runs of a schedule are created. */
export const executorOfSchedule = ({ executor_kind: kind, executor_uid: uid }: ScheduleRow): RunActor => ({
  kind,
  uid,
});

/** SQL of the columns. `s` is the alias of the table. */
export const scheduleColumns = Object.keys(scheduleRow)
  .map((name) => `s.${name}`)
  .join(', ');

export type ScheduleRow = Readonly<RowOf<{ name: string; text: string; row: typeof scheduleRow }>>;

/**
 * Returns the parsed expression, the time zone and the anchor of a schedule. Throws if the stored expression cannot be parsed, which
 * the API prevents.
 */
export function timesOf(row: Pick<ScheduleRow, 'cron_schedule' | 'timezone' | 'anchor_at'>): Times {
  const parsed = parseExpression(row.cron_schedule);
  if (!parsed.ok) throw new Error(`the expression of a schedule ${parsed.problem}`);
  return { expression: parsed.expression, timezone: row.timezone, anchorMs: Date.parse(row.anchor_at) };
}
