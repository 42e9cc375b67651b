/** Converts checked files into the members of a definition. Fills in defaults, and removes members that only inherit their value. */

import { presetAliases } from '@runyard/contract/agent/harness-presets/presets';
import type { AgentFile } from '@runyard/contract/factories/files/agent-file';
import type { AutomationFile } from '@runyard/contract/factories/files/automation-file';
import type { EnvironmentFile } from '@runyard/contract/factories/files/environment-file';
import type { FactoryFile } from '@runyard/contract/factories/files/factory-file';
import type { RunnerFile } from '@runyard/contract/factories/files/runner-file';
import type { WebhookFile } from '@runyard/contract/factories/files/webhook-file';
import type { z } from 'zod';
import type {
  DefinedAgent,
  DefinedAutomation,
  DefinedEnvironment,
  DefinedFactory,
  DefinedRunner,
  DefinedWebhook,
} from './definition.ts';

/** For these keys, null means that the value is not inherited. For all other keys, null means the same as an absent key. */
const clearing = new Set(['workerHost', 'reasoningLevel', 'auth']);

/**
 * Removes undefined members, and null members whose key is not in `clearing`. For a key in `clearing`, null stays, and an empty text
 * becomes null.
 */
function compact(value: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(value).flatMap(([key, member]): [string, unknown][] => {
    if (clearing.has(key)) return member === undefined ? [] : [[key, member === '' ? null : member]];
    if (member === undefined || member === null) return [];
    return [[key, key === 'harness' ? toHarness(member as Record<string, unknown>) : member]];
  });
  return Object.fromEntries(entries);
}

/** Replaces an alias in the type of a harness, such as `claude-code`, by the name that runs use (`claude`). */
function toHarness(harness: Record<string, unknown>): Record<string, unknown> {
  const members = compact(harness);
  const type = presetAliases.get(String(members.type));
  return type === undefined ? members : { ...members, type };
}

export function toFactory({ schemaVersion: _version, ...file }: z.output<typeof FactoryFile>): DefinedFactory {
  return { ...compact(file), agentDefaults: compact(file.agentDefaults) } as DefinedFactory;
}

export function toAgent(name: string, prompt: string, file: z.output<typeof AgentFile>): DefinedAgent {
  const agentType = file.agentType === 'MAIN' ? 'FOREMAN' : (file.agentType ?? 'CUSTOM');
  return { ...compact(file), name, agentType, prompt } as DefinedAgent;
}

export function toAutomation(name: string, prompt: string, file: z.output<typeof AutomationFile>): DefinedAutomation {
  const triggers = file.triggers.map((trigger) => {
    if (!['github', 'webhook', 'factory'].includes(trigger.provider) || !('filter' in trigger) || !trigger.filter)
      return withoutUndefined(trigger);
    const { filter: given, ...rest } = trigger;
    const filter = withoutUndefined(given);
    return Object.keys(filter).length === 0 ? rest : { ...rest, filter };
  });
  return { ...compact(file), name, enabled: file.enabled ?? true, triggers, prompt } as DefinedAutomation;
}

export function toWebhook(name: string, file: z.output<typeof WebhookFile>): DefinedWebhook {
  return {
    ...compact(file),
    name,
    authMode: file.authMode ?? 'token',
    enabled: file.enabled ?? true,
  } as DefinedWebhook;
}

export function toRunner(name: string, file: z.output<typeof RunnerFile>): DefinedRunner {
  return { ...compact(file), name } as DefinedRunner;
}

/** An environment file has the members of the API, whose nulls have a meaning, so only undefined members are removed. */
export function toEnvironment(name: string, file: z.output<typeof EnvironmentFile>): DefinedEnvironment {
  return { name, config: { ...withoutUndefined(file), name: file.name ?? name } as DefinedEnvironment['config'] };
}

function withoutUndefined(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined));
}
