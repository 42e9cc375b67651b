/** Checks a request body and turns it into a run that may be created. */

import { builtinHarness } from '@runyard/contract/agent/harness-presets/builtin';
import type { EnvironmentRepository } from '@runyard/contract/environments/repositories';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RunAgentRequest } from '@runyard/contract/runs/run-request';
import type { RunSourceType } from '@runyard/contract/runs/states';
import type { SecretReference } from '@runyard/contract/secrets/secrets';
import { type Fault, type NotUsable, notUsable } from '../../../platform/fault.ts';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import type { ContentRevision, RunContent } from '../../../team/access/contents/content.ts';
import type { RunRights } from '../../../team/access/contents/run-rights.ts';
import { resolveRunAs, runAsParent } from '../../../team/access/identities/run-as.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { imageProblem } from '../../../team/environments/image.ts';
import { findNamedEnvironment } from '../../../team/environments/named.ts';
import { secretsOfServers } from '../../../team/mcp/secret-references.ts';
import type { Models } from '../../../team/models/models.ts';
import { readRecentModelChoices } from '../../../team/models/team-models.ts';
import { faultsOfReferences } from '../../../team/stored-secrets/find-usable.ts';
import { type DecodedAttachment, decodeAttachments } from '../../files/attachments/decode.ts';
import { faultOfOutputSchema } from '../../results/check-output-schema.ts';
import { type BeginOfRun, faultOfComparison } from './comparison.ts';
import { composeRun, withoutValues } from './compose-run.ts';
import { faultsOfFreshChecks } from './fresh-check-faults.ts';
import { readLineage } from './lineage.ts';
import type { NewRun } from './new-run.ts';
import { checkConfig, checkMcpServers } from './request-config.ts';
import { contentsOfConfig, contentsOfRequest } from './request-contents.ts';
import { checkHarness } from './request-harness.ts';
import { checkModels } from './request-models.ts';
import { checkPublishedMembers, withRunner } from './request-published.ts';
import { rightsOfRequest, withoutLoosening } from './request-rights.ts';
import { checkSkills } from './run-skills.ts';

/** The result for a valid request: the run to create, and the decoded files of the request. */
export interface DecodedRunRequest {
  readonly kind: 'ok';
  readonly run: NewRun;
  readonly files: readonly DecodedAttachment[];
  /** Values of the secrets that the request names. The stored run does not contain these values. */
  readonly values: readonly string[];
}

/** Outcome of the check. The comment of each outcome begins with its HTTP status. */
export type RequestOutcome =
  | DecodedRunRequest
  /** 400 */
  | { readonly kind: 'invalid'; readonly faults: readonly Fault[] }
  /** 403 `not_authorized`. `fault` names the member of the request whose value the caller may not use. */
  | { readonly kind: 'forbidden'; readonly detail: string; readonly fault?: Fault }
  /**
   * 403 `not_authorized`: the author of a content may not use a secret that the request names. The refusal ends when the executor accepts the
   * content.
   */
  | { readonly kind: 'withheld'; readonly detail: string }
  /** 403 `feature_not_available` */
  | { readonly kind: 'not_available'; readonly detail: string }
  /** 503 `resource_unavailable`: the provider of the model has an outage, and the run allows no other model. */
  | { readonly kind: 'model_outage'; readonly detail: string; readonly retryAfterSeconds: number };

const readConversation = defineStatement({
  name: 'has_conversation_of_team',
  text: `
    SELECT FROM runs WHERE conversation_id = $1 AND team_id = $2
    UNION ALL SELECT FROM forked_runs f JOIN runs r ON r.id = f.run_id WHERE f.conversation_id = $1 AND r.team_id = $2 LIMIT 1`,
  row: {},
});

async function checkConversation(
  db: Queryable,
  teamId: string,
  request: RunAgentRequest,
  faults: Fault[],
): Promise<void> {
  const id = request.conversation_id;
  if (id === undefined) return;
  const rows = isUuid(id) ? await db.query(readConversation, [id, teamId]) : [];
  if (rows.length === 0) faults.push({ path: 'conversation_id', message: 'there is no such conversation' });
}

/** Only a rerun may omit all of these members; the schema requires one of them in other requests. */
const missingPrompt: Fault = {
  path: 'prompt',
  message: 'is required: the run that is repeated has no prompt of its own, because it continued a conversation',
};

/** Values of the environment that the request names. The run may use this environment. */
interface EnvironmentParts {
  readonly repositories: readonly EnvironmentRepository[];
  readonly secrets: readonly SecretReference[];
  readonly contents: readonly ContentRevision[];
  /** UID of the environment if another team owns it and allows the executor to use it. */
  readonly guestOf?: string;
}

/** Finds the environment that a request names, with the permissions of the run's executor. Adds a fault if it cannot be used. */
async function findEnvironment(
  db: Queryable,
  executor: Pick<Principal, 'teamId'> & { readonly creator: RunActor },
  { environment_id: uid }: AmbientAgentConfig,
  faults: Fault[],
): Promise<EnvironmentParts | NotUsable> {
  if (uid === undefined) return { repositories: [], secrets: [], contents: [] };
  const environment = await findNamedEnvironment(db, executor, uid);
  const path = 'config.environment_id';
  if (environment.kind === 'not_usable') return notUsable(path, 'environment', 'GET /agent/environments');
  const message = imageProblem(environment.config);
  if (message !== null) faults.push({ path, message });
  return {
    repositories: environment.config.github_repos ?? [],
    // A team that uses the environment as a guest gets no secrets for the names in it.
    secrets: environment.isGuest ? [] : (environment.config.secrets ?? []),
    contents: [{ kind: 'environment', uid, revision: environment.revision }],
    ...(environment.isGuest ? { guestOf: uid } : {}),
  };
}

interface CheckDeps {
  /** The transaction of the caller, or the database if the caller has no transaction. */
  readonly db: Queryable;
  /**
   * Set to the database if `db` is a transaction. With `root`, the model choices that were read through the database a moment ago can be
   * used again.
   */
  readonly root?: Queryable;
  readonly models: Models;
  readonly vault: Vault;
}

/** A transaction of the caller holds locks, so it does not wait for a check that may be slow. */
const isInTransaction = ({ db, root = db }: CheckDeps): boolean => db !== root;

/** Says where a request comes from. */
export interface RequestSource {
  /** True if the agent of a run sent the request. */
  readonly isChild?: boolean;
  /** Rights of the run whose agent sent the request; absent: no agent sent it, or its run is older than rights. */
  readonly within?: RunRights | undefined;
  /** Stored contents from which the request was made, such as a schedule. */
  readonly contents?: readonly ContentRevision[] | undefined;
  /** The run that the request repeats. */
  readonly rerunOf?: string | undefined;
  /** The commits and files with which the original of a comparison began; absent: the run is not made for a comparison. */
  readonly comparedWith?: BeginOfRun | undefined;
  /** Names the influence from outside the team, as in `RunSubmission`. */
  readonly outsider?: string | undefined;
  /**
   * True if the request is only checked, for a definition. A definition is stored even if this service does not offer its model or its
   * platform.
   */
  readonly keepsLacking?: boolean | undefined;
  /** True: the run runs a check of its parent. */
  readonly isFreshCheck?: boolean | undefined;
}

/** Checks the rules that a schema cannot check: every object that the request names must exist and belong to the caller's team. */
export async function checkRunRequest(
  deps: CheckDeps,
  principal: Pick<Principal, 'teamId'> & { readonly creator: RunActor },
  request: RunAgentRequest,
  origin: RunSourceType,
  {
    isChild = false,
    within,
    contents: madeFrom = [],
    rerunOf,
    comparedWith,
    outsider,
    keepsLacking,
    isFreshCheck = false,
  }: RequestSource = {},
): Promise<RequestOutcome> {
  const { db, models, vault } = deps;
  const { teamId } = principal;
  const faults: Fault[] = [];
  // A child has the configuration of its parent. From its agent identity, the child gets only the parts that the parent's configuration
  // also has.
  const runAs = isChild ? runAsParent(principal, request) : await resolveRunAs(db, principal, request);
  if (runAs.kind === 'forbidden') return runAs;
  if (runAs.kind === 'invalid') return { kind: 'invalid', faults: [runAs.fault] };
  const { executor, setupSecrets: setupOnly } = runAs;
  const given = await withRunner(db, teamId, runAs.config, faults);
  const environment = await findEnvironment(db, { teamId, creator: executor }, given, faults);
  if ('kind' in environment) return environment;
  const checked = checkSkills({ ...request, config: given }, environment.repositories);
  const { first: skillSpec } = checked;
  faults.push(...checked.faults);
  if (!request.prompt?.trim() && request.conversation_id === undefined && skillSpec === undefined)
    faults.push(missingPrompt);
  const ofLineage: Fault[] = [];
  const lineage = await readLineage(db, teamId, request, ofLineage, isFreshCheck);
  const revisions = [...madeFrom, ...runAs.contents, ...environment.contents];
  const named = { teamId, creator: principal.creator, executor, rerunOf, parentRunId: lineage.parentRunId };
  const { config, keepsMode, ...found } = await withContents(db, named, request, checked.config, {
    madeFrom,
    revisions,
  });
  const contents = outsider === undefined ? found.contents : [...found.contents, contentOfOutsider(outsider)];
  checkConfig(config, keepsLacking, faults);
  checkPublishedMembers({ config, creator: principal.creator, executor }, faults);
  const servers = await checkMcpServers(db, teamId, config.mcp_servers ?? {});
  if ('kind' in servers) return servers;
  faults.push(...servers.faults);
  const harness = checkHarness(config);
  if (!harness.ok) faults.push(harness.fault);
  const checkedModels = checkModels(
    models,
    await readRecentModelChoices(deps.root ?? db, teamId, db),
    { config, harness: harness.ok ? harness : { harness: builtinHarness }, mayWait: mayWait(origin), keepsLacking },
    faults,
  );
  const { attachments, faults: attachmentFaults } = decodeAttachments(request);
  faults.push(...attachmentFaults);
  faults.push(...ofLineage);
  await checkConversation(db, teamId, request, faults);
  faults.push(...faultsOfReferences(config.secrets ?? []));
  const bySchema = isInTransaction(deps) ? undefined : await faultOfOutputSchema(teamId, config);
  if (bySchema) faults.push(bySchema);
  faults.push(...(await faultsOfFreshChecks(db, { teamId, config }, environment.repositories)));
  const byBegin = comparedWith && faultOfComparison(comparedWith, environment.repositories);
  if (byBegin) faults.push(byBegin);
  const { mcp_servers = {} } = config;
  const ofServers = secretsOfServers(mcp_servers);
  const names = { ofRun: config.secrets ?? [], ofEnvironment: environment.secrets, ofServers, setupOnly };
  const granted = await rightsOfRequest(
    { db, vault },
    { teamId, executor, contents, guestOf: environment.guestOf, servers: mcp_servers, within },
    names,
  );
  if (granted.kind === 'forbidden' || granted.kind === 'withheld') return granted;
  if (granted.kind === 'invalid') faults.push(granted.fault);
  if (faults.length > 0 || !harness.ok || granted.kind !== 'ok') return { kind: 'invalid', faults };
  if (checkedModels.kind !== 'ok') return checkedModels;

  const begin = comparedWith ? { comparisonCommits: comparedWith.commits ?? [] } : {};
  const run = composeRun(
    request,
    { ...lineage, ...begin },
    {
      teamId,
      creator: { kind: principal.creator.kind, uid: principal.creator.uid },
      executor,
      config,
      skillSpec,
      harness: harness.harness,
      models: checkedModels,
      environment: environment.contents[0],
      source: lineage.parentRunId === undefined ? origin : 'ORCHESTRATION',
      mode: keepsMode ? request.mode : undefined,
      contents,
      rights: granted.rights,
    },
  );
  const { values } = granted;
  return { kind: 'ok', ...withoutValues(values, run, attachments), values };
}

/**
 * Returns a content whose author is unknown, for a person outside the team. The service does not know the rights of this author, so the run
 * gets no right that depends on the authors of its texts.
 */
const contentOfOutsider = (outsider: string): RunContent => ({
  kind: 'prompt',
  author: null,
  accepted: false,
  excerpt: outsider,
});

/**
 * Accept an outage for a run of a schedule or a webhook: the run waits for the provider, because the time of the schedule or the delivery
 * does not come again.
 */
const mayWait = (origin: RunSourceType): boolean => origin === 'SCHEDULED_AGENT' || origin === 'WEBHOOK';

/**
 * Returns the contents from which the run is made, and its configuration without what their authors may not loosen. `madeFrom`: the contents
 * from which the request was made. `revisions`: these and all others that are known. `keepsMode`: the run has the mode of the request.
 */
async function withContents(
  db: Queryable,
  of: Omit<Parameters<typeof contentsOfRequest>[1], 'revisions' | 'conversationId'>,
  request: RunAgentRequest,
  wanted: AmbientAgentConfig,
  { madeFrom, revisions }: Readonly<Record<'madeFrom' | 'revisions', readonly ContentRevision[]>>,
) {
  const { teamId, executor, rerunOf } = of;
  const contents = await contentsOfRequest(db, {
    ...of,
    revisions: [...revisions, ...(await contentsOfConfig(db, teamId, wanted, madeFrom))],
    conversationId: request.conversation_id,
  });
  const isOwn = rerunOf === undefined && madeFrom.length === 0;
  const user = { teamId, executor, contents };
  const config = await withoutLoosening(db, user, wanted, isOwn ? request.config : undefined);
  // Somebody outside of the team must not let the agent start runs, neither with `child_runs` nor with the mode.
  return { contents, config, keepsMode: isOwn || config === wanted || request.mode !== 'orchestrate' };
}
