/** Applies definitions to factories. Either all changes of a definition are made, or none. */
import { isDeepStrictEqual } from 'node:util';
import type {
  ApplyDefinitionRequest,
  ApplyDefinitionResponse,
  DefinitionProblem,
  FactoryChange,
} from '@runyard/contract/factories/factory-definitions';
import { compare, type DefinitionFault } from '@runyard/contract/factories/files/faults';
import { pathOf } from '@runyard/contract/factories/files/layout';
import type { FactoryDefinition } from '@runyard/definitions/definition';
import { type ChangePlan, type PlannedChange, planChanges } from '@runyard/definitions/plan-changes';
import { type ReadDefinition, readDefinition } from '@runyard/definitions/read-definition';
import { storedFiles } from '@runyard/definitions/stored-files';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { type Author, recordChange } from '../../team/access/audit/record.ts';
import { readPresentRevisions, writeAcceptance } from '../../team/access/contents/content.ts';
import { listAutomations } from '../automations/automations.ts';
import { toItems } from '../automations/items.ts';
import { replaceFactoryAgents } from '../factories/agents.ts';
import {
  defineFactory,
  lockFactory,
  lockPartsOfFactory,
  readFactory,
  reviseDefinition,
} from '../factories/factories.ts';
import { applyAutomations } from './apply-automations.ts';
import { applyWebhooks, checkWebhookIds, checkWebhooks, type WebhooksToApply } from './apply-webhooks.ts';
import { checkAutomations } from './automation-members.ts';
import { type CheckDeps, checkConfigs } from './check-configs.ts';
import { toFactoryAgent, toFactoryMembers } from './configs.ts';
import { type FaultList, makeFaultList } from './fault-list.ts';
import { noticesOf, toNoticed } from './notices.ts';
import { checkSkills } from './skills.ts';
import { driftOf, type FactoryAddress, noUids, readFactoryState, readTeamSecrets } from './state.ts';
import {
  noteCommit,
  readRepositoryOfFactory,
  readStoredDefinition,
  type StoredFile,
  writeStoredDefinition,
} from './stored.ts';

export interface DefinitionDeps extends CheckDeps {
  readonly db: Database;
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
  | { readonly kind: 'faulty'; readonly faults: readonly DefinitionFault[] };

/** The commit from which a sync has read the files. */
export interface FromCommit {
  readonly commit: string;
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

/**
 * Applies a definition to a factory in one transaction, with the rights of the person `by`. A dry run does the same work and then
 * rolls back, so it finds the same faults. Of two concurrent calls for one factory, the second waits for the first. A factory that has
 * a source repository accepts only the files of a sync (`from`).
 */
export async function applyDefinition(
  deps: DefinitionDeps,
  by: Author,
  factoryUid: string,
  request: ApplyDefinitionRequest,
  from?: FromCommit,
): Promise<ApplyOutcome> {
  if (!(await readFactory(deps.db, by.teamId, factoryUid))) return { kind: 'no_factory' };
  const read = readDefinition(request.files);
  if (!read.ok) return { kind: 'faulty', faults: read.faults };
  const files = storedFiles(request.files).toSorted((a, b) => compare(a.path, b.path));
  try {
    return await deps.db.transaction(async (tx) => {
      const outcome = await applyWithin(deps, tx, by, { factoryUid, read, files, request, from });
      if (outcome.kind !== 'applied' || request.dry_run) throw new NotKept(outcome);
      return outcome;
    });
  } catch (error) {
    if (error instanceof NotKept) return error.outcome;
    throw error;
  }
}

interface Apply {
  readonly factoryUid: string;
  readonly read: Extract<ReadDefinition, { ok: true }>;
  readonly files: readonly StoredFile[];
  readonly request: ApplyDefinitionRequest;
  readonly from: FromCommit | undefined;
}

async function applyWithin(
  deps: CheckDeps,
  tx: Queryable,
  by: Author,
  { factoryUid, read, files, request, from }: Apply,
): Promise<ApplyOutcome> {
  const { teamId } = by;
  const { definition } = read;
  const factory = { teamId, factoryUid };
  if (!(await lockFactory(tx, teamId, factoryUid))) return { kind: 'no_factory' };
  const repository = from || request.dry_run ? null : await readRepositoryOfFactory(tx, factoryUid);
  if (repository !== null) return { kind: 'has_source', repository };
  const stored = await readStoredDefinition(tx, teamId, factoryUid);
  const version = stored?.version ?? 0;
  if ((request.expected_version ?? version) !== version) return { kind: 'other_version', version };
  const before = stored ? definitionOf(stored.files) : undefined;
  const uids = stored?.uids ?? noUids;
  const faults = makeFaultList(read);
  checkSkills(definition, faults);
  checkAutomations(definition, faults);
  await checkConfigs(deps, tx, by, { definition, factoryUid }, faults);

  // From here on, webhook deliveries to this factory wait. The lock of the factory is not enough, because other transactions change and
  // delete webhooks and automations without this lock.
  await lockPartsOfFactory(tx, factoryUid);
  const state = await readFactoryState(tx, deps.vault, factory);
  const secrets = await readTeamSecrets(tx, deps.vault, teamId, definition);
  const plan = planChanges(before, definition);
  const drift = before ? driftOf(state, before, uids, await readTeamSecrets(tx, deps.vault, teamId, before)) : [];

  const webhooks: WebhooksToApply = { factory, definition, state, uids: uids.webhooks, secrets };
  addRefusals(plan, faults);
  checkWebhooks(webhooks, faults);
  checkWebhookIds(webhooks, faults);
  if (faults.count() > 0) return { kind: 'faulty', faults: faults.list() };

  if ((await defineFactory(tx, factory, toFactoryMembers(definition))) === 'taken')
    faults.add('factory.yaml', ['alias'], 'another factory of the team has this alias');
  const agents = definition.agents.map((agent) => toFactoryAgent(agent, definition, factoryUid));
  await replaceFactoryAgents(tx, factoryUid, agents);
  const applied = {
    webhooks: await applyWebhooks(tx, deps.vault, by, webhooks, faults),
    automations: await applyAutomations(
      deps,
      tx,
      by,
      { factoryUid, definition, state, uids: uids.automations },
      faults,
    ),
  };
  if (faults.count() > 0) return { kind: 'faulty', faults: faults.list() };
  if (from && !request.dry_run && !(await from.keep(tx))) return { kind: 'superseded' };
  const changes = toChanges(plan.changes);
  const problems = await readProblems(tx, factory, applied.automations);
  const notices = noticesOf(deps.models, toNoticed(read));
  const answer = { dry_run: request.dry_run, changes, drift: toChanges(drift), notices, problems };
  // If the commit does not change the definition, store only the commit and no new version. In a repository that also has other files,
  // most commits are of this kind.
  if (from && stored && changes.length + drift.length === 0 && isDeepStrictEqual(stored.files, files)) {
    await noteCommit(tx, factoryUid, from.commit);
    await acceptForSetter(tx, by, factoryUid);
    return { kind: 'applied', response: { ...answer, version } };
  }
  await recordChange(tx, by, {
    action: 'factory.apply',
    subject: { type: 'factory', uid: factoryUid, name: definition.factory.name },
    before: { version },
    after: { version: version + 1, ...(from ? { commit: from.commit } : {}) },
  });
  const next = request.dry_run ? version : version + 1;
  await writeStoredDefinition(tx, factoryUid, {
    version: next,
    files: [...files],
    uids: applied,
    applied_by_uid: by.creator.uid,
    commit_id: from?.commit ?? null,
  });
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
function definitionOf(files: readonly StoredFile[]): FactoryDefinition | undefined {
  const read = readDefinition(files);
  return read.ok ? read.definition : undefined;
}

/** Returns the changes in the form of the API's answer. */
export const toChanges = (changes: readonly PlannedChange[]): FactoryChange[] =>
  changes.map((change) => (change.action === 'change' ? { ...change, members: [...change.members] } : { ...change }));

function addRefusals({ refusals }: ChangePlan, faults: FaultList): void {
  for (const { kind, name, message } of refusals)
    faults.add(kind === 'webhook' ? pathOf.webhook(name) : 'factory.yaml', [], message);
}

/**
 * Returns why enabled automations cannot start runs. `uids`: the UIDs of the automations that the definition defines, by their names
 * in the files.
 */
async function readProblems(
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
