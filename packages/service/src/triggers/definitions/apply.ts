/** Applies definitions to factories. Either all changes of a definition are made, or none. */
import { isDeepStrictEqual } from 'node:util';
import type { DefinitionVariables } from '@runyard/contract/factories/definition-variables';
import type {
  ApplyDefinitionRequest,
  ApplyDefinitionResponse,
  FactoryChange,
} from '@runyard/contract/factories/factory-definitions';
import { compare, type DefinitionFault } from '@runyard/contract/factories/files/faults';
import { pathOf } from '@runyard/contract/factories/files/layout';
import { type ChangePlan, type PlannedChange, planChanges } from '@runyard/definitions/plan-changes';
import { type ReadDefinition, readDefinition } from '@runyard/definitions/read-definition';
import type { DefinitionFile } from '@runyard/definitions/read-files';
import { storedFiles } from '@runyard/definitions/stored-files';
import { withUids } from '@runyard/definitions/with-uids';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { type Author, recordChange } from '../../team/access/audit/record.ts';
import { readPresentRevisions, writeAcceptance } from '../../team/access/contents/content.ts';
import type { ContentPolicy, PolicyVerdict } from '../../team/content-policy/content-policy.ts';
import { replaceFactoryAgents } from '../factories/agents.ts';
import {
  defineFactory,
  lockFactory,
  lockPartsOfFactory,
  readFactory,
  reviseDefinition,
} from '../factories/factories.ts';
import { applyAutomations } from './apply-automations.ts';
import {
  applyWebhooks,
  checkWebhookIds,
  checkWebhookModes,
  checkWebhookSecrets,
  type WebhooksToApply,
} from './apply-webhooks.ts';
import { checkAutomations } from './automation-members.ts';
import { type CheckDeps, checkConfigs } from './check-configs.ts';
import { declaredMembersOf, toFactoryAgent, toFactoryMembers } from './configs.ts';
import {
  applyEnvironments,
  commandsOf,
  definesEnvironments,
  deleteEnvironments,
  findTeamEnvironments,
} from './environments.ts';
import { type FaultList, makeFaultList } from './fault-list.ts';
import { findMissingSchedules, noticesOf, toNoticed } from './notices.ts';
import { readProblems } from './problems.ts';
import { checkSkills } from './skills.ts';
import { driftOf, noUids, readDefinedEnvironments, readFactoryState, readTeamSecrets } from './state.ts';
import {
  noteCommit,
  readRepositoryOfFactory,
  readStoredDefinition,
  type StoredDefinition,
  type StoredFile,
  writeStoredDefinition,
} from './stored.ts';
import { keepVersion } from './versions.ts';

export interface DefinitionDeps extends CheckDeps {
  readonly db: Database;
  /** Absent: the operator has defined no rules. */
  readonly contentPolicy?: ContentPolicy | undefined;
}

/** Outcome of applying a definition. The comments name the HTTP status of each outcome. */
export type ApplyOutcome =
  /** 200 */
  | { readonly kind: 'applied'; readonly response: ApplyDefinitionResponse }
  /** 404 */
  | { readonly kind: 'no_factory' }
  /** 409: another version than the expected one is stored. `version`: the stored version. */
  | { readonly kind: 'other_version'; readonly version: number }
  /** 409: the factory takes its definition from this repository. */
  | { readonly kind: 'has_source'; readonly repository: string }
  /** Only for a sync: the source has changed meanwhile, or another sync has started. */
  | { readonly kind: 'superseded' }
  /** 422. The faults are sorted by file, line and column. */
  | { readonly kind: 'faulty'; readonly faults: readonly DefinitionFault[] }
  /** 403 or 503: the content policy refuses a command of an environment, or cannot be checked. */
  | Exclude<PolicyVerdict, { kind: 'allowed' }>;

/** The commit from which a sync has read the files. */
export interface FromCommit {
  readonly commit: string;
  /** Values that are stored with the source; they replace those of earlier applies. */
  readonly variables: DefinitionVariables;
  /**
   * Stores that the sync has succeeded, near the end of the transaction. Returns false if the sync has lost its claim, or the person
   * who set the source may no longer apply definitions. Then the caller must store nothing.
   */
  keep(tx: Queryable): Promise<boolean>;
}

/** Thrown to roll the transaction back and return an outcome. */
class NotKept extends Error {
  readonly outcome: ApplyOutcome;
  constructor(outcome: ApplyOutcome) {
    super('rolled back');
    this.outcome = outcome;
  }
}

/** Files from a repository may be bytes that are not text. */
type FilesToApply = Omit<ApplyDefinitionRequest, 'files'> & { readonly files: readonly DefinitionFile[] };

/** How a definition came to be applied. Neither member: a person sent its files. */
interface Origin {
  readonly from?: FromCommit;
  /** The earlier version whose files and variables are applied again. */
  readonly rolledBackTo?: number;
}

/**
 * Applies a definition to a factory in one transaction, with the rights of the person `by`. A dry run does the same work and then
 * rolls back, so it finds the same faults. Of two concurrent calls for one factory, the second waits for the first. A factory that has
 * a source repository accepts only the files of a sync (`from`). Variables that the request does not name keep the values that the
 * last apply was given, except in a rollback.
 */
export async function applyDefinition(
  deps: DefinitionDeps,
  by: Author,
  factoryUid: string,
  request: FilesToApply,
  origin: Origin = {},
): Promise<ApplyOutcome> {
  if (!(await readFactory(deps.db, by.teamId, factoryUid))) return { kind: 'no_factory' };
  const present = await readStoredDefinition(deps.db, by.teamId, factoryUid);
  const kept = origin.rolledBackTo === undefined ? (present?.variables ?? {}) : {};
  const apply = await prepareApply(deps, by.teamId, { request, kept, origin });
  if ('kind' in apply) return apply;
  try {
    return await deps.db.transaction(async (tx) => {
      const outcome = await applyWithin(deps, tx, by, factoryUid, apply);
      if (outcome.kind !== 'applied' || request.dry_run) throw new NotKept(outcome);
      return outcome;
    });
  } catch (error) {
    if (error instanceof NotKept) return error.outcome;
    throw error;
  }
}

/** A definition that can be applied in a transaction. */
interface Apply {
  readonly read: Extract<ReadDefinition, { ok: true }>;
  readonly files: readonly StoredFile[];
  /** The values that this apply or an earlier one was given. */
  readonly variables: DefinitionVariables;
  /** The stored values of earlier applies with which `read` was made. */
  readonly kept: DefinitionVariables;
  readonly request: FilesToApply;
  readonly origin: Origin;
}

/** Reads the files of a definition and asks the content policy. Call this function before the transaction of `applyWithin`. */
export async function prepareApply(
  deps: Pick<DefinitionDeps, 'contentPolicy'>,
  teamId: string,
  { request, kept, origin }: Pick<Apply, 'request' | 'kept' | 'origin'>,
): Promise<Apply | Exclude<ApplyOutcome, { kind: 'applied' }>> {
  const valuesBefore = { ...kept, ...origin.from?.variables };
  const read = readDefinition(request.files, { given: request.variables, kept: valuesBefore });
  if (!read.ok) return { kind: 'faulty', faults: read.faults };
  const verdict = await deps.contentPolicy?.check(teamId, commandsOf(read.definition));
  if (verdict && verdict.kind !== 'allowed') return verdict;
  const files = storedFiles(request.files).toSorted((a, b) => compare(a.path, b.path));
  const given = Object.entries({ ...valuesBefore, ...request.variables });
  const variables = Object.fromEntries(given.filter(([name]) => Object.hasOwn(read.variables, name)));
  return { read, files, variables, kept, request, origin };
}

/** Applies a definition in the transaction of the caller, who rolls the transaction back unless the outcome is `applied`. */
export async function applyWithin(
  deps: CheckDeps,
  tx: Queryable,
  by: Author,
  factoryUid: string,
  apply: Apply,
): Promise<ApplyOutcome> {
  const { read, files, variables, kept, request, origin } = apply;
  const { from } = origin;
  const { teamId } = by;
  const named = read.definition;
  const factory = { teamId, factoryUid };
  if (!(await lockFactory(tx, teamId, factoryUid))) return { kind: 'no_factory' };
  const repository = from || request.dry_run ? null : await readRepositoryOfFactory(tx, factoryUid);
  if (repository !== null) return { kind: 'has_source', repository };
  const stored = await readStoredDefinition(tx, teamId, factoryUid);
  const version = stored?.version ?? 0;
  const isKept = origin.rolledBackTo !== undefined || isDeepStrictEqual(stored?.variables ?? {}, kept);
  if (!isKept || (request.expected_version ?? version) !== version) return { kind: 'other_version', version };
  const before = stored ? definitionOf(stored) : undefined;
  const uids = stored?.uids ?? noUids;
  const faults = makeFaultList(read);
  checkSkills(named, faults);
  checkAutomations(named, faults);
  // The audit log is locked after webhooks and automations, and changes of environments are in the audit log.
  if (definesEnvironments(named, uids)) await lockPartsOfFactory(tx, factoryUid);
  const presentEnvironments = await readDefinedEnvironments(tx, teamId, uids);
  const ofTeam = await findTeamEnvironments(tx, teamId, named, faults);
  const environments = { teamId, definition: named, uids: uids.environments ?? {} };
  const defined = await applyEnvironments(deps.vault, tx, by, environments, faults);
  const definition = withUids(named, { webhooks: {}, environments: { ...ofTeam, ...defined } });
  await checkConfigs(deps, tx, by, { definition, factoryUid }, faults);

  // From here on, webhook deliveries to this factory wait. The lock of the factory is not enough, because other transactions change and
  // delete webhooks and automations without this lock.
  await lockPartsOfFactory(tx, factoryUid);
  const state = await readFactoryState(tx, deps.vault, factory, presentEnvironments);
  const secrets = await readTeamSecrets(tx, deps.vault, teamId, named);
  const plan = planChanges(before, named);
  const drift = before ? driftOf(state, before, uids, await readTeamSecrets(tx, deps.vault, teamId, before)) : [];

  const webhooks: WebhooksToApply = { factory, definition, state, uids: uids.webhooks, secrets };
  addRefusals(plan, faults);
  checkWebhookSecrets(webhooks, faults);
  checkWebhookModes(webhooks, faults);
  checkWebhookIds(webhooks, faults);
  if (faults.count() > 0) return { kind: 'faulty', faults: faults.list() };

  const members = { ...toFactoryMembers(definition), ...declaredMembersOf(definition) };
  if ((await defineFactory(tx, factory, members)) === 'taken')
    faults.add('factory.yaml', ['alias'], 'another factory of the team has this alias');
  const agents = definition.agents.map((agent) => toFactoryAgent(agent, definition, factoryUid));
  await replaceFactoryAgents(tx, factoryUid, agents);
  const webhookUids = await applyWebhooks(tx, deps.vault, by, webhooks, faults);
  const final = withUids(definition, { webhooks: webhookUids, environments: {} });
  const automations = { factoryUid, definition: final, state, uids: uids.automations };
  const applied = { webhooks: webhookUids, automations: await applyAutomations(deps, tx, by, automations, faults) };
  await deleteEnvironments(tx, by, environments);
  if (faults.count() > 0) return { kind: 'faulty', faults: faults.list() };
  if (from && !request.dry_run && !(await from.keep(tx))) return { kind: 'superseded' };
  const changes = toChanges(plan.changes);
  const problems = await readProblems(tx, factory, applied.automations);
  const noticed = toNoticed(read);
  const notices = noticesOf(deps.models, noticed, await findMissingSchedules(tx, teamId, noticed));
  const answer = { dry_run: request.dry_run, changes, drift: toChanges(drift), notices, problems };
  // If the commit does not change the definition, store only the commit and no new version. In a repository that also has other files,
  // most commits are of this kind.
  const isSame = stored && isDeepStrictEqual([stored.files, stored.variables], [files, variables]);
  if (from && isSame && changes.length + drift.length === 0) {
    await noteCommit(tx, factoryUid, from.commit);
    await acceptForSetter(tx, by, factoryUid);
    return { kind: 'applied', response: { ...answer, version } };
  }
  await recordChange(tx, by, {
    action: origin.rolledBackTo === undefined ? 'factory.apply' : 'factory.rollback',
    subject: { type: 'factory', uid: factoryUid, name: named.factory.name },
    before: { version },
    after: {
      version: version + 1,
      ...(from ? { commit: from.commit } : {}),
      ...(origin.rolledBackTo === undefined ? {} : { rolled_back_to: origin.rolledBackTo }),
    },
  });
  const next = request.dry_run ? version : version + 1;
  const written = {
    version: next,
    files: [...files],
    variables,
    uids: { ...applied, environments: defined, team_environments: ofTeam },
    applied_by_uid: by.creator.uid,
    commit_id: from?.commit ?? null,
  };
  await writeStoredDefinition(tx, factoryUid, written);
  if (!request.dry_run) await keepVersion(tx, factoryUid, { ...written, rolled_back_to: origin.rolledBackTo ?? null });
  await reviseDefinition(tx, factoryUid, by);
  if (from) await acceptForSetter(tx, by, factoryUid);
  return { kind: 'applied', response: { ...answer, version: next } };
}

/** Accepts the present revision for the person who set the source: with the source, this person accepted all later commits. */
async function acceptForSetter(tx: Queryable, { teamId, creator }: Author, factoryUid: string): Promise<void> {
  const [present] = await readPresentRevisions(tx, teamId, 'definition', [factoryUid]);
  if (present && creator.kind === 'user') await writeAcceptance(tx, creator.uid, present);
}

/** Returns a stored definition. Returns undefined if its files cannot be read any more because the format has changed. */
export function definitionOf({ files, variables }: Pick<StoredDefinition, 'files' | 'variables'>) {
  const read = readDefinition(files, { kept: variables });
  return read.ok ? read.definition : undefined;
}

/** Returns the changes in the form of the API's answer. */
export const toChanges = (changes: readonly PlannedChange[]): FactoryChange[] =>
  changes.map((change) => (change.action === 'change' ? { ...change, members: [...change.members] } : { ...change }));

/** Adds a fault for each reason why a plan cannot be applied. */
export function addRefusals({ refusals }: ChangePlan, faults: FaultList): void {
  for (const { kind, name, message } of refusals)
    faults.add(kind === 'webhook' ? pathOf.webhook(name) : 'factory.yaml', [], message);
}
