/** Prepares runs: checks their requests, and stores their large files. `submit.ts` writes the prepared runs. */

import type { RerunRequest, RunAgentRequest } from '@runyard/contract/runs/run-request';
import type { RunSourceType } from '@runyard/contract/runs/states';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import { brieflyKnown } from '../../../platform/store/database/briefly-known.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, nullable } from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import type { Author } from '../../../team/access/audit/record.ts';
import type { ContentRevision } from '../../../team/access/contents/content.ts';
import type { RunRights } from '../../../team/access/contents/run-rights.ts';
import type { ContentPolicy, PolicyVerdict } from '../../../team/content-policy/content-policy.ts';
import type { Models } from '../../../team/models/models.ts';
import { unpricedMessage } from '../../../team/usage/budget/admit.ts';
import { type TeamBudgetState, teamBudgetState } from '../../../team/usage/budget/team-budget.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { isOfFreshCheck } from '../../executions/fresh-checks/fresh-checks.ts';
import { holdsSlot, isOfPool, servesPool, takesRuns } from '../../executions/queue/may-take.ts';
import {
  copyAttachments,
  discardAttachments,
  type StoredAttachment,
  storeAttachments,
} from '../../files/attachments/store.ts';
import { type StorageRefusal, takeRoomForRequest } from '../../files/stored-bytes.ts';
import type { RunCheckout } from '../read/checkout.ts';
import type { ChildLimits } from '../tree/admit-child.ts';
import { type BeginOfRun, readBeginOfRun } from './comparison.ts';
import type { NewRun, ScheduleOfRun } from './new-run.ts';
import { checkRunRequest, type RequestOutcome } from './request.ts';
import { readRerun } from './rerun.ts';

/**
 * Reads the column `at_capacity`: true if a new run would have to wait, because the team's limit is reached or no connected worker of the
 * pool has a free slot. The other columns show how much the team may still spend.
 */
const readCapacity = defineStatement({
  name: 'read_at_capacity',
  text: `
    SELECT (SELECT count(*) FROM executions e WHERE e.team_id = $1 AND ${holdsSlot('e')}) >= t.max_concurrent_executions
      OR coalesce((SELECT sum(coalesce(slots, 1000)) FROM worker_connections
                   WHERE ${takesRuns('worker_connections')} AND ${servesPool('worker_connections', '$2', '$1')}), 0)
         <= (SELECT count(*) FROM executions e WHERE ${isOfPool('e', '$2', '$1')} AND ${holdsSlot('e')}) AS at_capacity,
      ${teamBudgetState('$1')}
    FROM teams t WHERE t.id = $1`,
  row: {
    at_capacity: nullable(boolean),
    is_out_of_credits: boolean,
    is_month_spent: boolean,
    is_limited: boolean,
  },
});

/** Says whether a new run of a team would have to wait, and how much the team may still spend. */
interface TeamState extends TeamBudgetState {
  readonly at_capacity: boolean | null;
}

const noState: TeamState = { at_capacity: false, is_out_of_credits: false, is_month_spent: false, is_limited: false };

const readState = brieflyKnown<ExecutionDeps, TeamState>(
  1000,
  async (db, teamId, pool) => (await db.query(readCapacity, [teamId, pool]))[0] ?? noState,
);

/**
 * Returns whether a run would have to wait, and how much its team may spend. The answer is at most a second old. This is enough:
 * `at_capacity` is only a hint for the caller, and each request to a model is checked against the budgets again. `tx`: the transaction of
 * the caller, if it has one.
 */
export const readTeamState = (
  deps: ExecutionDeps,
  tx: Queryable | undefined,
  { teamId, workerHost = '' }: Pick<NewRun, 'teamId' | 'workerHost'>,
): Promise<TeamState> => readState(deps, tx, teamId, workerHost);

export interface SubmitDeps {
  readonly executionDeps: ExecutionDeps;
  readonly blobs: BlobStore;
  readonly models: Models;
  /** Absent: the service has no content policy. */
  readonly contentPolicy?: ContentPolicy;
}

/** A request to repeat a run of the team with its files. The request may replace some members of the first request. */
export interface RerunOf {
  readonly rerunOf: string;
  readonly instead: RerunRequest;
  /** True: the service repeats the run after a failure. */
  readonly isRetry?: true;
}

/** A request for a run. A person, an agent or an event causes it. */
export interface RunSubmission {
  /** The creator of the run, and the run's team. */
  readonly actor: { readonly teamId: string; readonly creator: RunActor };
  readonly request: RunAgentRequest | RerunOf;
  readonly source: RunSourceType;
  /** The owner of the key that sent the request, for the audit log; absent: no key sent it. */
  readonly by?: Author;
  /** The schedule that creates the run. */
  readonly schedule?: ScheduleOfRun;
  /** Limits for a child run that an agent starts. */
  readonly child?: ChildLimits;
  /** Rights of the run whose agent starts the child. Null: that run is older than rights. */
  readonly within?: RunRights | null;
  /** Stored contents from which the request was made, such as a schedule. */
  readonly contents?: readonly ContentRevision[];
  /** True: an agent has asked for the run, which is below its run, and its text may do no more than `within`. */
  readonly isBelow?: boolean;
  /** The head of the pull request that the run checks out. A run that repeats another one has the head of that run. */
  readonly checkout?: RunCheckout | undefined;
  /**
   * Names the influence from outside the team: the outsider who caused the run, or the fork whose code it executes. Such a run has no secrets
   * and no credentials, and the runs that repeat or continue it have none either.
   */
  readonly outsider?: string | undefined;
  /** True: the run runs a check of its parent, so it may be deeper than other runs. */
  readonly isFreshCheck?: boolean;
}

/**
 * A run that passed the checks and is not written to any table yet. The large files of the run are already in the blob store. If the run is
 * not written, `discardRun` deletes these files, or the sweep of unreferenced blobs does so later.
 */
export interface PreparedRun {
  readonly kind: 'prepared';
  readonly run: NewRun;
  /** True if the run would have to wait for a slot. This is only a hint for the caller. */
  readonly atCapacity: boolean;
}

/** 403: the team may not spend more. */
export interface BudgetRefusal {
  readonly kind: 'over_budget';
  readonly code: 'budget_exceeded' | 'insufficient_credits';
  readonly detail: string;
}

/** 403 `content_policy_violation`; 503 if the policy cannot be checked now. */
type PolicyRefusal = Exclude<PolicyVerdict, { kind: 'allowed' }>;

/** Reasons why a submission creates no run. The comment of each reason names its HTTP status. */
export type PrepareRefusal =
  /** 400, 403 or 503 */
  | Exclude<RequestOutcome, { kind: 'ok' }>
  | PolicyRefusal
  | BudgetRefusal
  | StorageRefusal
  /** 404: the run to repeat does not exist in the team. */
  | { readonly kind: 'no_such_run' }
  /** 409: the bytes of a file to copy were deleted. */
  | { readonly kind: 'file_lost' };

/**
 * Checks a submission and stores its large files. All callers that create runs use this function: the API, reruns, child runs, schedules
 * and webhook deliveries. `tx`: the transaction of the caller, which later writes the run with `writeRuns`.
 */
export async function prepareRun(
  deps: SubmitDeps,
  submission: RunSubmission,
  tx?: Queryable,
): Promise<PreparedRun | PrepareRefusal> {
  const { blobs, executionDeps } = deps;
  const { actor, by, schedule, child } = submission;
  const wanted = await resolveRequest(tx ?? executionDeps.db, actor.teamId, submission.request);
  if (!wanted) return { kind: 'no_such_run' };
  if (await repeatsCheck(tx ?? executionDeps.db, submission.request))
    return {
      kind: 'not_available',
      detail: 'This run only executes a check of its parent run. Repeat the parent run.',
    };
  const checked = await checkSubmission(deps, { ...submission, request: wanted.request }, tx, wanted);
  if (checked.kind !== 'ok') return checked;
  // Do not check the content policy in a transaction of the caller, because a slow check would hold the locks of the transaction. The
  // policy is checked again when a run begins.
  const byPolicy = tx ? null : await refusedByPolicy(deps, checked.run);
  if (byPolicy) return byPolicy;
  const team = await readTeamState(executionDeps, tx, checked.run);
  const overBudget = refusedByBudget(team, checked.run);
  if (overBudget) return overBudget;
  const isFull = await takeRoomForRequest(executionDeps, tx, actor.teamId, {
    texts: [checked.run.prompt, JSON.stringify(checked.run.config)],
    fileBytes: wanted.copyOf?.map(({ sizeBytes }) => sizeBytes) ?? checked.files.map(({ bytes }) => bytes.length),
  });
  if (isFull) return isFull;
  const attachments = wanted.copyOf
    ? await copyAttachments(blobs, wanted.copyOf)
    : await storeAttachments(blobs, checked.files);
  if (!attachments) return { kind: 'file_lost' };
  const checkout = 'rerunOf' in submission.request ? wanted.checkout : submission.checkout;
  const run = {
    ...checked.run,
    attachments,
    ...(checkout ? { checkout } : {}),
    ...repeatsOf(submission.request),
    ...(child ? { childLimits: child } : {}),
    ...(by ? { by } : {}),
    ...(schedule ? { schedule } : {}),
  };
  return { kind: 'prepared', run, atCapacity: team.at_capacity ?? false };
}

/** Deletes the blobs that `prepareRun` stored for a run that was not written. */
export const discardRun = ({ blobs }: SubmitDeps, { run }: PreparedRun): Promise<void> =>
  discardAttachments(blobs, run.attachments);

/** The run that a submission would create. `refusal`: the reason why the service would refuse this run although the request is valid. */
export interface PreviewedRun {
  readonly kind: 'ok';
  readonly run: NewRun;
  readonly refusal: BudgetRefusal | PolicyRefusal | null;
}

/** Checks a submission in the same way as `prepareRun`, but stores nothing. */
export async function previewRun(
  deps: SubmitDeps,
  submission: RunSubmission & { readonly request: RunAgentRequest },
): Promise<PreviewedRun | Exclude<RequestOutcome, { kind: 'ok' }>> {
  const checked = await checkSubmission(deps, submission);
  if (checked.kind !== 'ok') return checked;
  const { run } = checked;
  const byPolicy = await refusedByPolicy(deps, run);
  const overBudget = refusedByBudget(await readTeamState(deps.executionDeps, undefined, run), run);
  return { kind: 'ok', run, refusal: overBudget ?? byPolicy };
}

const checkSubmission = (
  { executionDeps: { db, vault }, models }: SubmitDeps,
  {
    actor,
    request,
    source,
    child,
    within,
    contents,
    isBelow = false,
    isFreshCheck,
    outsider,
  }: RunSubmission & { readonly request: RunAgentRequest },
  tx?: Queryable,
  { rerunOf, comparedWith }: Partial<Omit<WantedRun, 'request'>> = {},
): Promise<RequestOutcome> =>
  checkRunRequest({ db: tx ?? db, root: db, models, vault }, actor, request, source, {
    isChild: child !== undefined || isBelow,
    within: within ?? undefined,
    contents,
    rerunOf,
    comparedWith,
    outsider,
    isFreshCheck,
  });

/** Returns the reason why the content policy does not allow the texts of the run; null if it allows them. */
async function refusedByPolicy(
  { contentPolicy }: SubmitDeps,
  { teamId, prompt, config }: Pick<NewRun, 'teamId' | 'prompt' | 'config'>,
): Promise<PolicyRefusal | null> {
  // Check the texts as the agent gets them: without the values of secrets, and with the configuration of the agent identity.
  const texts = [prompt, config.base_prompt ?? ''].map((text) => ({ kind: 'prompt' as const, text }));
  const verdict = await contentPolicy?.check(teamId, texts);
  return verdict && verdict.kind !== 'allowed' ? verdict : null;
}

/** Returns the reason why the team's budget does not allow the run; null if it allows the run. */
function refusedByBudget(team: TeamState, { unpricedId }: Pick<NewRun, 'unpricedId'>): BudgetRefusal | null {
  const raise = 'An administrator can raise it with PATCH /budget.';
  if (team.is_out_of_credits)
    return { kind: 'over_budget', code: 'insufficient_credits', detail: `The team has no credits left. ${raise}` };
  if (team.is_month_spent)
    return { kind: 'over_budget', code: 'budget_exceeded', detail: `The team has spent its monthly limit. ${raise}` };
  return unpricedId !== undefined && team.is_limited
    ? { kind: 'over_budget', code: 'budget_exceeded', detail: unpricedMessage(unpricedId) }
    : null;
}

interface WantedRun {
  readonly request: RunAgentRequest;
  /** Stored files to copy. They take the place of files in the request. */
  readonly copyOf?: readonly StoredAttachment[];
  /** The run whose prompt or configuration the request repeats. */
  readonly rerunOf?: string;
  /** The commits and files with which the original of a comparison began; absent: the run is not made for a comparison. */
  readonly comparedWith?: BeginOfRun;
  readonly checkout?: RunCheckout | null;
}

/** Returns the member of a run that names the run which it repeats. */
const repeatsOf = (request: RunSubmission['request']): Pick<NewRun, 'retryOf' | 'rerunOf'> => {
  if (!('rerunOf' in request)) return {};
  return request.isRetry ? { retryOf: request.rerunOf } : { rerunOf: request.rerunOf };
};

const repeatsCheck = async (db: Queryable, request: RunSubmission['request']): Promise<boolean> =>
  'rerunOf' in request && (await isOfFreshCheck(db, request.rerunOf));

/** Returns the request to submit; null if there is no run to repeat. */
async function resolveRequest(
  db: Queryable,
  teamId: string,
  request: RunAgentRequest | RerunOf,
): Promise<WantedRun | null> {
  if (!('rerunOf' in request)) return { request };
  const rerun = await readRerun(db, teamId, request.rerunOf, request.instead);
  if (!rerun) return null;
  const { prompt, config, comparison } = request.instead;
  const comparedWith = comparison === true ? await readBeginOfRun(db, request.rerunOf) : undefined;
  const { checkout, attachments, request: repeated } = rerun;
  // The mode, the attachments and the commit of the repeated run belong to the new request too.
  const isOwn =
    prompt !== undefined &&
    config !== undefined &&
    repeated.mode === undefined &&
    attachments.length === 0 &&
    checkout === null;
  return {
    request: repeated,
    copyOf: attachments,
    checkout,
    ...(isOwn ? {} : { rerunOf: request.rerunOf }),
    ...(comparedWith ? { comparedWith } : {}),
  };
}
