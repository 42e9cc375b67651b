/** Plans definitions for callers who may read a factory, but not change it. */
import type { ApplyDefinitionResponse, PlanDefinitionRequest } from '@runyard/contract/factories/factory-definitions';
import type { DefinitionFault } from '@runyard/contract/factories/files/faults';
import { pathOf } from '@runyard/contract/factories/files/layout';
import type { FactoryDefinition } from '@runyard/definitions/definition';
import { planChanges } from '@runyard/definitions/plan-changes';
import { readDefinition } from '@runyard/definitions/read-definition';
import { withUids } from '@runyard/definitions/with-uids';
import type { Queryable } from '../../platform/store/database/database.ts';
import type { Author } from '../../team/access/audit/record.ts';
import { listSecrets } from '../../team/stored-secrets/stored-secrets.ts';
import { readFactory } from '../factories/factories.ts';
import { addRefusals, type DefinitionDeps, definitionOf, toChanges } from './apply.ts';
import { checkWebhookIds, checkWebhookModes } from './apply-webhooks.ts';
import { checkAutomations } from './automation-members.ts';
import { checkConfigs } from './check-configs.ts';
import { findTeamEnvironments } from './environments.ts';
import { type FaultList, makeFaultList } from './fault-list.ts';
import { findMissingSchedules, noticesOf, toNoticed } from './notices.ts';
import { checkSkills } from './skills.ts';
import { driftOf, missingSecret, noUids, readDefinedEnvironments, readFactoryState } from './state.ts';
import { readStoredDefinition } from './stored.ts';
import type { FileChecks } from './validate.ts';

/** `no_factory` becomes 404, `faulty` 422, `busy` 429, and `too_slow` 400. */
export type PlanOutcome =
  | { readonly kind: 'planned'; readonly response: ApplyDefinitionResponse }
  | { readonly kind: 'no_factory' }
  | { readonly kind: 'busy' | 'too_slow' }
  | { readonly kind: 'faulty'; readonly faults: readonly DefinitionFault[] };

/**
 * Returns the changes that an apply would make. Writes and locks nothing, so it delays no deliveries. Every name is looked up with the
 * rights of the caller: a thing that the caller may not see counts as missing. No values of secrets are read, and for agent keys not even
 * the names of secrets and the ids of schedules are looked up.
 */
export async function planDefinition(
  deps: DefinitionDeps,
  checks: FileChecks,
  by: Author,
  factoryUid: string,
  { files, variables }: PlanDefinitionRequest,
): Promise<PlanOutcome> {
  const { db, vault, models } = deps;
  const { teamId } = by;
  if (!(await readFactory(db, teamId, factoryUid))) return { kind: 'no_factory' };
  const stored = await readStoredDefinition(db, teamId, factoryUid);
  const kept = stored?.variables;
  // The thread of the checks limits the time for hostile YAML, because many programs may have keys that only plan.
  const checked = await checks.validate(teamId, { files, variables, kept });
  if (checked.kind !== 'checked') return { kind: checked.kind };
  const { diagnostics } = checked.response;
  if (diagnostics.length > 0)
    return {
      kind: 'faulty',
      faults: diagnostics.map(({ path: file, suggestion, ...fault }) => ({
        file,
        ...fault,
        ...(suggestion === undefined ? {} : { suggestion }),
      })),
    };
  const read = readDefinition(files, { given: variables, kept });
  if (!read.ok) return { kind: 'faulty', faults: read.faults };
  const before = stored ? definitionOf(stored) : undefined;
  const uids = stored?.uids ?? noUids;
  const faults = makeFaultList(read);
  const named = read.definition;
  const factory = { teamId, factoryUid };
  checkSkills(named, faults);
  checkAutomations(named, faults);
  const ofTeam = await findTeamEnvironments(db, teamId, named, faults);
  const definition = withUids(named, { webhooks: {}, environments: { ...ofTeam, ...uids.environments } });
  // An agent key sees only the secrets of its identity, so a missing secret and a hidden one are the same to it: neither is a fault.
  const isPerson = by.creator.kind === 'user';
  await checkConfigs(deps, db, by, { definition, factoryUid, withoutSecrets: !isPerson }, faults);
  if (isPerson) await checkSecretNames(db, by, named, faults);
  const state = await readFactoryState(db, vault, factory, await readDefinedEnvironments(db, teamId, uids));
  const plan = planChanges(before, named);
  addRefusals(plan, faults);
  checkWebhookModes({ factory, definition, state, uids: uids.webhooks }, faults);
  checkWebhookIds({ factory, definition, state, uids: uids.webhooks }, faults);
  if (faults.count() > 0) return { kind: 'faulty', faults: faults.list() };
  // Without the values of secrets, the drift does not say whether a webhook has another secret than its file.
  const drift = before ? driftOf(state, before, uids, new Map()) : [];
  const noticed = toNoticed(read);
  const missing = isPerson ? await findMissingSchedules(db, teamId, noticed) : [];
  return {
    kind: 'planned',
    response: {
      version: stored?.version ?? 0,
      dry_run: true,
      changes: toChanges(plan.changes),
      drift: toChanges(drift),
      notices: noticesOf(models, noticed, missing),
      problems: [],
    },
  };
}

/** Adds a fault for each secret of a webhook or an environment that the caller does not see in the list of secrets. */
async function checkSecretNames(
  db: Queryable,
  by: Author,
  { webhooks, environments }: FactoryDefinition,
  faults: FaultList,
): Promise<void> {
  const visible = new Set((await listSecrets(db, by)).flatMap(({ name, scope }) => (scope === 'team' ? [name] : [])));
  for (const { name, secretName } of webhooks)
    if (!visible.has(secretName)) faults.add(pathOf.webhook(name), ['secretName'], missingSecret(secretName));
  for (const { name, config } of environments)
    for (const secret of config.secrets ?? [])
      if (!visible.has(secret.name)) faults.add(pathOf.environment(name), ['secrets'], missingSecret(secret.name));
}
