/** Reports the models of a definition that this service does not offer, and the schedules that the team does not have. */

import { collectFaults, type DefinitionFault, type Position } from '@runyard/contract/factories/files/faults';
import { pathOf } from '@runyard/contract/factories/files/layout';
import type { FactoryDefinition } from '@runyard/definitions/definition';
import type { ReadDefinition } from '@runyard/definitions/read-definition';
import type { Queryable } from '../../platform/store/database/database.ts';
import type { Models } from '../../team/models/models.ts';
import { noSchedule, scheduleIdsOf } from '../automations/schedule-ids.ts';
import { readTeamSchedules } from '../schedules/schedules.ts';
import type { Execution } from './configs.ts';

/** Largest number of models that a notice names. With more names, the sentence would be unreadable. */
const maxNamed = 8;

/** Returns the parts of the files that may name a model, with their paths in the files. */
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

/** The name of a model or the id of a schedule in a definition, and its place. */
export interface NamedPart {
  readonly file: string;
  /** Path of the member that contains the name, with dots between the parts. */
  readonly member: string;
  readonly position: Position;
  readonly name: string;
}

/** The parts of a definition from which `noticesOf` makes the notices. */
export interface Noticed {
  /** The notices that reading the files has found. */
  readonly notices: readonly DefinitionFault[];
  readonly named: readonly NamedPart[];
  /** The schedules that triggers name. */
  readonly schedules: readonly NamedPart[];
}

/** Returns the parts of a definition from which `noticesOf` makes the notices. */
export function toNoticed({ definition, notices, locate }: Extract<ReadDefinition, { ok: true }>): Noticed {
  const named = placesOf(definition).flatMap(({ file, base, members }): NamedPart[] => {
    const name = members.model ?? members.harness?.model;
    if (!name) return [];
    const path = [...base, ...(members.model ? ['model'] : ['harness', 'model'])];
    return [{ file, member: path.join('.'), position: locate(file, path), name }];
  });
  const schedules = definition.automations.flatMap(({ name: automation, triggers }) =>
    triggers.flatMap((trigger, index) => {
      const file = pathOf.automation(automation);
      const path = ['triggers', index, 'filter', 'schedule_ids'];
      const position = locate(file, path);
      return scheduleIdsOf(trigger).map((name): NamedPart => ({ file, member: path.join('.'), position, name }));
    }),
  );
  return { notices, named, schedules };
}

/** Returns the parts of a definition that name no schedule of the team. */
export async function findMissingSchedules(
  db: Queryable,
  teamId: string,
  { schedules }: Noticed,
): Promise<readonly NamedPart[]> {
  if (schedules.length === 0) return [];
  const ids = [...new Set(schedules.map(({ name }) => name))];
  const present = new Set((await readTeamSchedules(db, teamId, ids)).map(({ id }) => id));
  return schedules.filter(({ name }) => !present.has(name));
}

/**
 * Returns the notices of a definition: the parts of its files that have no effect on this service, and each model that only the public
 * service offers. `missing`: the result of `findMissingSchedules`. Returns at most 100 notices, sorted by file and line.
 */
export function noticesOf(
  models: Models,
  { notices, named }: Noticed,
  missing: readonly NamedPart[] = [],
): DefinitionFault[] {
  const collected = collectFaults();
  for (const { file, message, suggestion, ...position } of notices) collected.add(file, position, message, suggestion);
  for (const { file, member, position, name } of named) {
    const resolved = models.resolve(name);
    if (resolved.ok || !('isLacking' in resolved) || !resolved.isLacking) continue;
    const message = `${member}: ${resolved.message}. Runs with it are refused. This service offers ${offeredBy(models)}`;
    collected.add(file, position, message);
  }
  for (const { file, member, position, name } of missing)
    collected.add(file, position, `${member}: ${noSchedule(name)}, so it never starts this automation`);
  return collected.list();
}
