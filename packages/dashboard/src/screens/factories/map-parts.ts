/** The parts of the map of a factory: sources of events, automations, agents, and the links between them. */
import type { TeamAutomation, TeamWebhook } from '@runyard/contract/automations/team-lists';
import type { Factory } from '@runyard/contract/factories/factories';
import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import { countText } from '../../parts/format.ts';

/** One box of the map. */
export interface Place {
  readonly id: string;
  readonly name: string;
  readonly note: string;
  readonly isWrong: boolean;
  readonly isOff: boolean;
  /** Path of the page of the thing; absent: it has none. */
  readonly to?: string;
}

/** A link from a box of one column to a box of the next column. */
export interface Wire {
  readonly from: string;
  readonly to: string;
  readonly isOff: boolean;
}

export interface FactoryMapParts {
  readonly sources: readonly Place[];
  readonly automations: readonly Place[];
  readonly agents: readonly Place[];
  /** From sources to automations. */
  readonly starts: readonly Wire[];
  /** From automations to agents. */
  readonly gives: readonly Wire[];
}

interface Things {
  readonly factoryUid: string;
  readonly webhooks: readonly TeamWebhook[];
  readonly automations: readonly TeamAutomation[];
  /** The schedules of the team; absent: they are not read yet. */
  readonly schedules?: readonly ScheduledAgentItem[] | undefined;
  readonly agents: Factory['agents'];
}

/** Returns the boxes and links of a map. */
export function mapParts({ factoryUid, webhooks, automations, schedules, agents = [] }: Things): FactoryMapParts {
  const foreman = agents.find(({ agent_type: type }) => type === 'FOREMAN')?.name ?? 'foreman';
  const agentOf = ({ agent }: TeamAutomation) => agent ?? foreman;
  const ofTriggers = automations.map((automation) => ({
    automation,
    sources: automation.triggers.flatMap((trigger) => sourcesOf(trigger, webhooks, schedules)),
  }));
  const sources = [
    ...webhooks.map((webhook): Place => {
      const { uid, name, signature_scheme: scheme, auth_mode: mode, enabled, last_24_hours: today } = webhook;
      const note = `${scheme ?? mode.replaceAll('_', ' ')}, ${countText(today.accepted, 'event')} in 24 h`;
      return place(uid, name, note, { isOff: !enabled, to: `/factories/${factoryUid}/webhooks/${uid}` });
    }),
    ...ofTriggers.flatMap(({ sources: named }) => named.flatMap(({ own }) => own ?? [])),
  ];
  return {
    sources: unique(sources),
    automations: automations.map(({ uid, name, enabled, problems = [], last_24_hours: today }) =>
      place(uid, name, `${countText(today.started, 'run')} in 24 h`, {
        isWrong: problems.length > 0,
        isOff: !enabled,
        to: `/factories/${factoryUid}/automations/${uid}`,
      }),
    ),
    agents: unique(
      automations.map((automation) => {
        const name = agentOf(automation);
        const type = agents.find((agent) => agent.name === name)?.agent_type;
        return place(name, name, type === undefined ? 'agent' : type.toLowerCase(), {});
      }),
    ),
    starts: ofTriggers.flatMap(({ automation: { uid, enabled }, sources: named }) =>
      unique(named).map(({ id }) => ({ from: id, to: uid, isOff: !enabled })),
    ),
    gives: automations.map((automation) => ({
      from: automation.uid,
      to: agentOf(automation),
      isOff: !automation.enabled,
    })),
  };
}

const place = (id: string, name: string, note: string, more: Partial<Place>): Place => ({
  id,
  name,
  note,
  isWrong: false,
  isOff: false,
  ...more,
});

const unique = <T extends { readonly id: string }>(places: readonly T[]): T[] => [
  ...new Map(places.map((each) => [each.id, each])).values(),
];

/** Returns the boxes of the sources that a trigger listens to. `own`: a box that only triggers have, such as the times of a schedule. */
function sourcesOf(
  { provider, filter, schedule }: TeamAutomation['triggers'][number] & { readonly schedule?: unknown },
  webhooks: readonly TeamWebhook[],
  schedules: Things['schedules'],
): { readonly id: string; readonly own?: Place }[] {
  const named = filter?.webhook_ids;
  switch (provider) {
    case 'webhook':
      return (Array.isArray(named) ? named.map(String) : webhooks.map(({ uid }) => uid)).map((id) => ({ id }));
    case 'github': {
      const feeding = webhooks.filter(({ signature_scheme: scheme }) => scheme === 'github');
      if (feeding.length > 0) return feeding.map(({ uid }) => ({ id: uid }));
      return [own(place('github', 'GitHub', 'no webhook has the scheme github', { isWrong: true }))];
    }
    case 'schedule': {
      if (schedule === undefined) return scheduleIdsOf(filter).map((id) => own(placeOfSchedule(id, schedules)));
      const { cron = '', timezone = 'UTC' } = schedule as Record<string, string>;
      return [own(place(`schedule ${cron} ${timezone}`, cron, `times in ${timezone}`, {}))];
    }
    case 'factory':
      return [own(place('factory', 'Tasks', 'moves to another stage', {}))];
    default:
      return [own(place(provider, provider, 'never fires here', { isWrong: true }))];
  }
}

/** Returns the ids of the schedules of the team that the filter of a trigger names. */
export function scheduleIdsOf(filter: TeamAutomation['triggers'][number]['filter']): string[] {
  const ids = filter?.schedule_ids;
  const list: unknown = Array.isArray(ids) ? ids : Reflect.get(Object(ids), 'in');
  return Array.isArray(list) ? list.map(String) : [];
}

function placeOfSchedule(id: string, schedules: Things['schedules']): Place {
  const found = schedules?.find((each) => each.id === id);
  if (found)
    return place(id, found.name, `schedule, ${found.cron_schedule}`, { isOff: !found.enabled, to: `/schedules/${id}` });
  return place(id, id, schedules ? 'the team has no such schedule' : 'schedule', { isWrong: schedules !== undefined });
}

const own = (shown: Place) => ({ id: shown.id, own: shown });
