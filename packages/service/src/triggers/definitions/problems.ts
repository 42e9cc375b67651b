import type { DefinitionProblem } from '@runyard/contract/factories/factory-definitions';
import type { Queryable } from '../../platform/store/database/database.ts';
import { listAutomations } from '../automations/automations.ts';
import { toItems } from '../automations/items.ts';
import type { FactoryAddress } from './state.ts';

/**
 * Returns why enabled automations cannot start runs. `uids`: the UIDs of the automations that the definition defines, by their names
 * in the files.
 */
export async function readProblems(
  db: Queryable,
  factory: FactoryAddress,
  uids: Readonly<Record<string, string>>,
): Promise<DefinitionProblem[]> {
  const names = new Map(Object.entries(uids).map(([name, uid]) => [uid, name]));
  const automations = await listAutomations(db, factory.teamId, factory.factoryUid);
  const enabled = automations.filter(({ uid, enabled: isEnabled }) => isEnabled && names.has(uid));
  if (enabled.length === 0) return [];
  const items = await toItems(db, factory.teamId, enabled);
  return items.flatMap(({ uid, name, problems = [] }) =>
    problems.map((message) => ({ automation: names.get(uid) ?? name, message })),
  );
}
