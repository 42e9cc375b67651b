/** Reports the models of a definition that this service does not offer. */

import { collectFaults, type DefinitionFault } from '@runyard/contract/factories/files/faults';
import { pathOf } from '@runyard/contract/factories/files/layout';
import type { FactoryDefinition } from '@runyard/definitions/definition';
import type { ReadDefinition } from '@runyard/definitions/read-definition';
import type { Models } from '../../team/models/models.ts';
import type { Execution } from './configs.ts';

/** Models that a notice names; more make the sentence unreadable. */
const maxNamed = 8;

/** Returns the members of each file that may name a model, with the path of these members. */
function placesOf({ factory, agents, automations }: FactoryDefinition) {
  const place = (file: string, base: readonly string[], members: Execution) => ({ file, base, members });
  return [
    place('factory.yaml', ['agentDefaults'], factory.agentDefaults),
    ...agents.map((agent) => place(pathOf.agent(agent.name), [], agent)),
    ...automations.map((automation) => place(pathOf.automation(automation.name), [], automation)),
  ];
}

function offeredBy(models: Models): string {
  const usable = models.list().models.filter(({ disable_reason: reason }) => reason === undefined);
  const more = usable.length > maxNamed ? `, and ${usable.length - maxNamed} more in GET /agent/models` : '';
  const names = usable.slice(0, maxNamed).map(({ id }) => id);
  return `${names.join(', ')}${more}`;
}

/**
 * Returns what a definition says without effect on this service: the notices about its files, and one for each model that the public
 * service may have and this one does not offer. At most 100, by file and line.
 */
export function noticesOf(
  models: Models,
  { definition, notices, locate }: Extract<ReadDefinition, { ok: true }>,
): DefinitionFault[] {
  const all = collectFaults();
  for (const { file, message, suggestion, ...position } of notices) all.add(file, position, message, suggestion);
  for (const { file, base, members } of placesOf(definition)) {
    const name = members.model ?? members.harness?.model;
    const resolved = name ? models.resolve(name) : undefined;
    if (!resolved || resolved.ok || !('isLacking' in resolved) || !resolved.isLacking) continue;
    const path = [...base, ...(members.model ? ['model'] : ['harness', 'model'])];
    const message = `${path.join('.')}: ${resolved.message}. Runs with it are refused. This service offers ${offeredBy(models)}`;
    all.add(file, locate(file, path), message);
  }
  return all.list();
}
