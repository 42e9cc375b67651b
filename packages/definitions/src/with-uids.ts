/** Replaces the names of webhooks and environments in a definition by their UIDs. */
import type { DefinedTrigger, FactoryDefinition } from './definition.ts';

/** The UIDs of webhooks and environments by their names; a name without a UID is left out. */
export interface UidsByName {
  readonly webhooks: Readonly<Record<string, string>>;
  readonly environments: Readonly<Record<string, string>>;
}

/** Returns the names of the webhooks of the definition that a trigger selects. */
export const webhooksNamedBy = (trigger: DefinedTrigger): readonly string[] =>
  trigger.provider === 'webhook' && 'filter' in trigger && Array.isArray(trigger.filter?.webhooks)
    ? (trigger.filter.webhooks as string[])
    : [];

/** The key that names the environment of runs, in the parts of a definition that have one. */
interface InEnvironment {
  readonly environment?: string | null | undefined;
  readonly environmentId?: string | null | undefined;
}

/** Returns the parts of a definition that may name an environment. */
const placesOf = ({ factory, agents, automations }: FactoryDefinition): readonly InEnvironment[] => [
  factory.agentDefaults,
  ...agents,
  ...automations,
];

/** Returns the names of the environments that a definition refers to, each once. */
export const environmentsNamedBy = (definition: FactoryDefinition): string[] => [
  ...new Set(placesOf(definition).flatMap(({ environment }) => environment ?? [])),
];

/**
 * Returns the definition with `webhook_ids` instead of `webhooks` in the filters of triggers, and with `environmentId` beside each
 * `environment`. A trigger or a part with a name that has no UID stays unchanged.
 */
export function withUids(definition: FactoryDefinition, uids: UidsByName): FactoryDefinition {
  const { factory, agents, automations } = definition;
  const inEnvironment = <T extends InEnvironment>(part: T): T => {
    const uid = part.environment ? own(uids.environments, part.environment) : undefined;
    return uid === undefined ? part : { ...part, environmentId: uid };
  };
  return {
    ...definition,
    factory: { ...factory, agentDefaults: inEnvironment(factory.agentDefaults) },
    agents: agents.map(inEnvironment),
    automations: automations.map((automation) => ({
      ...inEnvironment(automation),
      triggers: automation.triggers.map((trigger) => withWebhookUids(trigger, uids.webhooks)),
    })),
  };
}

function withWebhookUids(trigger: DefinedTrigger, uids: UidsByName['webhooks']): DefinedTrigger {
  const names = webhooksNamedBy(trigger);
  const found = names.flatMap((name) => own(uids, name) ?? []);
  if (names.length === 0 || found.length < names.length || !('filter' in trigger)) return trigger;
  const {
    webhooks: _names,
    webhook_ids: given = [],
    ...filter
  } = trigger.filter as {
    webhooks?: unknown;
    webhook_ids?: string[];
  };
  return { ...trigger, filter: { webhook_ids: [...new Set([...given, ...found])], ...filter } } as DefinedTrigger;
}

const own = (uids: Readonly<Record<string, string>>, name: string): string | undefined =>
  Object.hasOwn(uids, name) ? uids[name] : undefined;
