import type { Automation } from '@runyard/contract/automations/automations';
import { isAvailableProvider } from '@runyard/contract/factories/files/triggers';
import type { Queryable } from '../../platform/store/database/database.ts';
import { readRulesOfOwners } from '../../runs/inbox/rules.ts';
import { mayStartRuns } from '../../team/access/may-start-runs.ts';
import { readProfiles } from '../../team/access/profiles.ts';
import { readAgentNames } from '../factories/agents.ts';
import { readSchedulesOfAutomations, type TriggerRow } from '../schedules/of-automation.ts';
import { readTeamSchedules } from '../schedules/schedules.ts';
import { readSendingWebhooks, type SendingWebhook } from '../webhooks/webhooks.ts';
import { type AutomationRow, executorOf, webhooksOf } from './automation-row.ts';
import { missingAgent } from './request-of.ts';
import { noSchedule, scheduleIdsOf } from './schedule-ids.ts';

/** The webhooks of an automation's factory, the schedules of all automations to show, and the schedules of the team that they name. */
interface Parts {
  readonly webhooks: readonly SendingWebhook[];
  readonly schedules: readonly TriggerRow[];
  readonly ofTeam: readonly { readonly id: string; readonly enabled: boolean }[];
}

/** Returns, for each trigger of an automation that cannot start runs, why it cannot. */
function problemsOfTriggers(
  { uid, enabled, triggers }: AutomationRow,
  { webhooks, schedules, ofTeam }: Parts,
): string[] {
  return triggers.flatMap((trigger, index) => {
    const at = `triggers[${index}]`;
    if (!isAvailableProvider(trigger.provider)) return [`${at}: this service has no provider ${trigger.provider}`];
    if (trigger.provider === 'github' && !webhooks.some(({ signature_scheme: scheme }) => scheme === 'github'))
      return [`${at}: the factory has no webhook with the signature scheme github`];
    if (trigger.provider === 'schedule') {
      if (!trigger.schedule)
        return scheduleIdsOf(trigger).flatMap((id) => {
          const named = ofTeam.find((each) => each.id === id);
          if (!named) return [`${at}: ${noSchedule(id)}`];
          return named.enabled ? [] : [`${at}: the schedule ${id} is paused`];
        });
      const name = trigger.schedule.name ?? '';
      const schedule = schedules.find((each) => each.automation_uid === uid && each.trigger_name === name);
      return enabled && schedule?.enabled === false ? [`${at}: ${schedule.last_spawn_error}`] : [];
    }
    return webhooksOf(trigger).flatMap((webhookUid) => {
      const webhook = webhooks.find((each) => each.uid === webhookUid);
      if (!webhook) return [`${at}: the webhook ${webhookUid} was deleted`];
      return webhook.enabled ? [] : [`${at}: the webhook ${webhookUid} is disabled`];
    });
  });
}

const toScheduleItem = (row: TriggerRow, isEnabled: boolean) => ({
  schedule_id: row.id,
  ...(row.trigger_name === '' ? {} : { name: row.trigger_name }),
  cron: row.cron_schedule,
  timezone: row.timezone,
  next_run: isEnabled ? row.next_run_at : null,
  last_ran: row.last_ran_at,
});

/** Returns automations of a team in the form of the API, in the order of `rows`. */
export async function toItems(db: Queryable, teamId: string, rows: readonly AutomationRow[]): Promise<Automation[]> {
  const factoryUids = [...new Set(rows.map(({ factory_uid: uid }) => uid))];
  const webhooksBy = Map.groupBy(await readSendingWebhooks(db, teamId, factoryUids), ({ factory_uid: uid }) => uid);
  const agents = new Set((await readAgentNames(db, factoryUids)).map((each) => `${each.factory_uid} ${each.name}`));
  const schedules = await readSchedulesOfAutomations(
    db,
    rows.map(({ uid }) => uid),
  );
  const named = rows.flatMap(({ triggers }) => triggers.flatMap(scheduleIdsOf));
  const ofTeam = named.length === 0 ? [] : await readTeamSchedules(db, teamId, [...new Set(named)]);
  const creatorOf = ({ creator_kind: kind, creator_uid: uid }: AutomationRow) => ({ kind, uid });
  const editorOf = ({ editor_kind: kind, editor_uid: uid }: AutomationRow) => ({ kind, uid });
  const profileOf = await readProfiles(
    db,
    teamId,
    rows.flatMap((row) => [creatorOf(row), editorOf(row), executorOf(row)]),
  );
  const mayStart = await mayStartRuns(
    db,
    rows.map((row) => ({ teamId, ...executorOf(row) })),
  );
  const automationUids = rows.map(({ uid }) => uid);
  const rules = await readRulesOfOwners(db, teamId, { automationUids });
  return rows.map((row) => {
    const notify = rules.get(row.uid);
    const webhooks = webhooksBy.get(row.factory_uid) ?? [];
    const problems = problemsOfTriggers(row, { webhooks, schedules, ofTeam });
    const own = schedules.filter(({ automation_uid: uid }) => uid === row.uid);
    if (row.agent !== null && !agents.has(`${row.factory_uid} ${row.agent}`))
      problems.unshift(`agent: ${missingAgent(row.agent)}`);
    if (!mayStart({ teamId, ...executorOf(row) })) problems.unshift(executorMayNot);
    return {
      uid: row.uid,
      name: row.name,
      prompt: row.prompt,
      enabled: row.enabled,
      ...(row.agent === null ? {} : { agent: row.agent }),
      triggers: row.triggers,
      ...(own.length > 0 ? { schedules: own.map((each) => toScheduleItem(each, row.enabled)) } : {}),
      ...(row.config ? { config: row.config } : {}),
      overlap: row.overlap,
      ...(row.concurrency_key === null ? {} : { concurrency_key: row.concurrency_key }),
      ...(notify ? { notify } : {}),
      ...(problems.length > 0 ? { problems } : {}),
      last_spawn_error: row.last_spawn_error,
      created_at: row.created_at,
      updated_at: row.updated_at,
      created_by: profileOf(creatorOf(row)),
      updated_by: profileOf(editorOf(row)),
      executor: profileOf(executorOf(row)),
    };
  });
}

/** The reason why an automation starts no runs if its executor has left the team or become a viewer. */
export const executorMayNot =
  'the person or agent for whom the automation starts runs may no longer start runs of the team; ask somebody else to take it over (executor_uid)';
