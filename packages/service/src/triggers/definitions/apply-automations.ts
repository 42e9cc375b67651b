/** Changes the automations of a factory to match their definition. */
import { pathOf } from '@runyard/contract/factories/files/layout';
import type { FactoryDefinition } from '@runyard/definitions/definition';
import type { Queryable } from '../../platform/store/database/database.ts';
import { checkNotifyRules, setNotifyRules } from '../../runs/inbox/rules.ts';
import type { Author } from '../../team/access/audit/record.ts';
import {
  type AutomationFailure,
  createAutomation,
  deleteAutomation,
  updateAutomation,
} from '../automations/automations.ts';
import { namesOfDeleted } from './apply-webhooks.ts';
import { toAutomationMembers } from './automation-members.ts';
import type { CheckDeps } from './check-configs.ts';
import type { FaultList } from './fault-list.ts';
import { differencesOfAutomation, type FactoryState, uidOf } from './state.ts';

/** The arguments of `applyAutomations`. `uids`: the UIDs of the automations of the previous definition, by name. */
export interface AutomationsToApply {
  readonly factoryUid: string;
  readonly definition: FactoryDefinition;
  readonly state: FactoryState;
  readonly uids: Readonly<Record<string, string>>;
}

/** Creates, changes and deletes automations, and returns their UIDs by name. If this adds faults, the caller rolls the transaction back. */
export async function applyAutomations(
  deps: CheckDeps,
  tx: Queryable,
  by: Author,
  { factoryUid, definition, state, uids }: AutomationsToApply,
  faults: FaultList,
): Promise<Record<string, string>> {
  const checking = { ...deps, keepsLacking: true };
  for (const name of namesOfDeleted(uids, definition.automations))
    await deleteAutomation(tx, by, factoryUid, uidOf(uids, name));
  const applied: [string, string][] = [];
  for (const automation of definition.automations) {
    const { name } = automation;
    const wanted = toAutomationMembers(definition, automation);
    const present = state.automations.get(uidOf(uids, name));
    if (present && differencesOfAutomation(present, wanted).length === 0) {
      applied.push([name, present.uid]);
      continue;
    }
    const notify = wanted.notify ?? [];
    const wrong = await checkNotifyRules(tx, notify, { by, present: present?.notify ?? [] });
    for (const { path, message } of wrong) faults.add(pathOf.automation(name), path.split('.'), message);
    const outcome = present
      ? await updateAutomation(checking, tx, by, factoryUid, present.uid, wanted)
      : await createAutomation(checking, tx, by, factoryUid, wanted);
    if (outcome.kind !== 'stored') {
      faults.add(pathOf.automation(name), [], messageOf(outcome));
      continue;
    }
    applied.push([name, outcome.automation.uid]);
    await setNotifyRules(tx, { teamId: by.teamId, automationUid: outcome.automation.uid }, notify);
    // `updateAutomation` and `createAutomation` redact the values of secrets. So if the file contains such a value, the stored
    // automation differs from the file. Report this as a fault.
    const stored = { ...outcome.automation, ...(wanted.notify ? { notify: wanted.notify } : {}) };
    for (const { member } of differencesOfAutomation(stored, wanted))
      faults.add(
        pathOf.automation(name),
        [member],
        `${member}: contains the value of a secret of its runs; write the name of the secret instead, and change its value`,
      );
  }
  return Object.fromEntries(applied);
}

function messageOf(failure: AutomationFailure): string {
  switch (failure.kind) {
    case 'taken':
      return 'the factory has an automation of this name that no file defines; delete it, or take another name';
    case 'too_many':
      return 'the factory would have too many automations; delete others first';
    case 'invalid':
      return failure.faults.map(({ path, message }) => `${path}: ${message}`).join('; ');
    case 'forbidden':
    case 'withheld':
    case 'not_available':
    case 'model_outage':
      return failure.detail;
    case 'no_factory':
    case 'not_found':
      throw new Error('the factory or its automation is gone, although the factory is locked');
  }
}
