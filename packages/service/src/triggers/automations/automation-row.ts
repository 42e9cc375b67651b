import type { AutomationConfig, AutomationTrigger } from '@runyard/contract/automations/automations';
import type { OverlapPolicy } from '@runyard/contract/schedules/schedules';
import { findTimeZone } from '@runyard/contract/wire/time-zone';
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
import type { WantedTrigger } from '../schedules/of-automation.ts';

/** The columns of an automation with their types, for statements that read automations. */
export const automationRow = {
  uid: text(),
  factory_uid: text(),
  team_id: uuid,
  name: text(),
  prompt: text(),
  enabled: boolean,
  /** Name of the agent that executes the runs. It is one of the factory's agents; null: the foreman. */
  agent: nullable(text()),
  triggers: json<AutomationTrigger[]>(),
  config: nullable(json<AutomationConfig>()),
  overlap: text<OverlapPolicy>(),
  concurrency_key: nullable(text()),
  creator_kind: text<RunActor['kind']>(),
  creator_uid: text(),
  editor_kind: text<RunActor['kind']>(),
  editor_uid: text(),
  /** The runs of the automation act as this person or agent. An edit does not change it. */
  executor_kind: text<RunActor['kind']>(),
  executor_uid: text(),
  /** Why the last run could not be created; null: it was created. */
  last_spawn_error: nullable(text()),
  spawn_failures: integer,
  /** Present revision of the automation. Runs record it, because they execute the automation's content. */
  revision: integer,
  created_at: timestamp,
  updated_at: timestamp,
};

/** SQL of the columns. `a` is the alias of the table. */
export const automationColumns = Object.keys(automationRow)
  .map((name) => `a.${name}`)
  .join(', ');

export type AutomationRow = Readonly<RowOf<{ name: string; text: string; row: typeof automationRow }>>;

/** The ids that name an automation in a request of its team. */
export interface AutomationAddress {
  readonly teamId: string;
  readonly factoryUid: string;
  readonly automationUid: string;
}

/** Returns the UIDs of the webhooks that a trigger selects. */
export const webhooksOf = ({ provider, filter }: AutomationTrigger): readonly string[] =>
  provider === 'webhook' ? idsOf(filter?.webhook_ids) : [];

/** Returns the ids of a member of a filter: a list, or an object with the list `in`. */
export function idsOf(ids: unknown): readonly string[] {
  const list: unknown = Array.isArray(ids) ? ids : Reflect.get(Object(ids), 'in');
  return Array.isArray(list) ? list.filter((id) => typeof id === 'string') : [];
}

export const schedulesOf = ({ triggers }: Pick<AutomationRow, 'triggers'>): WantedTrigger[] =>
  triggers.flatMap(({ provider, schedule }) =>
    provider === 'schedule' && schedule
      ? [
          {
            trigger_name: schedule.name ?? '',
            cron_schedule: schedule.cron.trim(),
            timezone: findTimeZone(schedule.timezone ?? 'UTC') ?? 'UTC',
          },
        ]
      : [],
  );

/** Returns the person or agent for whom the runs of an automation are created. */
export const executorOf = ({ executor_kind: kind, executor_uid: uid }: AutomationRow): RunActor => ({ kind, uid });
