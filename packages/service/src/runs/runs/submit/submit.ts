import type { RerunRequest, RunAgentRequest, RunAgentResponse } from '@runyard/contract/run-request';
import type { RunSourceType } from '@runyard/contract/states';
import type { Fault } from '../../../platform/fault.ts';
import { findReplay, type RepeatableRequest } from '../../../platform/idempotency/once.ts';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import type { ContentPolicy, PolicyVerdict } from '../../../team/content-policy/content-policy.ts';
import type { Models } from '../../../team/models/models.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { copyAttachments } from '../../files/attachments/copy.ts';
import { discardAttachments, type StoredAttachment, storeAttachments } from '../../files/attachments/store.ts';
import type { ChildLimits, ChildRefusal } from '../tree/admit-child.ts';
import { type BudgetRefusal, createRun, findBudgetRefusal } from './create.ts';
import type { RunBatch } from './insert-runs.ts';
import type { NewRun, ScheduleOfRun } from './new-run.ts';
import { checkRunRequest, type RequestOutcome } from './request.ts';
import { readRerun } from './rerun.ts';

export interface SubmitDeps {
  readonly executionDeps: ExecutionDeps;
  readonly blobs: BlobStore;
  readonly models: Models;
  /** Absent: there are no rules. */
  readonly contentPolicy?: ContentPolicy;
}

/** A request to repeat a run of the team, its files included, with some members replaced. */
export interface RerunOf {
  readonly rerunOf: string;
  readonly instead: RerunRequest;
}

/** A request for a run, by a person, an agent or an event. */
export interface RunSubmission {
  /** Creator of the run, and its team. */
  readonly actor: { readonly teamId: string; readonly creator: RunActor };
  readonly request: RunAgentRequest | RerunOf;
  readonly source: RunSourceType;
  /** The schedule that creates the run. */
  readonly schedule?: ScheduleOfRun;
  /** Limits for a run that an agent starts below its own. */
  readonly child?: ChildLimits;
  /** Identity of the request that its sender may repeat: the run is created once for it. */
  readonly once?: RepeatableRequest | undefined;
  /**
   * Transaction to create the run in, so that the run commits together with the caller's other rows. Large files of the
   * run are in the blob store before the commit; after a rollback the sweep of unreferenced blobs deletes them.
   */
  readonly tx?: Queryable;
  /**
   * With `tx`: the run is checked and added here, and the caller writes it with `insertRuns`. One statement for many runs is faster.
   */
  readonly batch?: RunBatch;
}

/** Outcome of a submission, each with the HTTP status that it becomes. */
export type SubmitOutcome =
  /** 200. The answer of the create, also to a repeated request. */
  | { readonly kind: 'submitted'; readonly response: RunAgentResponse }
  /** 409: the Idempotency-Key was used with another request. */
  | { readonly kind: 'idempotency_conflict' }
  /** 400 */
  | { readonly kind: 'invalid'; readonly faults: readonly Fault[] }
  /** 403 `not_authorized` */
  | { readonly kind: 'forbidden'; readonly detail: string }
  /** 403 `feature_not_available` */
  | { readonly kind: 'not_available'; readonly detail: string }
  | BudgetRefusal
  /** 503 `resource_unavailable` */
  | { readonly kind: 'model_outage'; readonly detail: string; readonly retryAfterSeconds: number }
  /** 403 `content_policy_violation`, and 503 where it cannot be decided now. */
  | Exclude<PolicyVerdict, { kind: 'allowed' }>
  /** 404: the team has no run to repeat by this id. */
  | { readonly kind: 'no_such_run' }
  /** 409: the bytes of a file to copy are gone. */
  | { readonly kind: 'file_lost' }
  /** 400 or 409: no run can be created below the parent. */
  | { readonly kind: 'child_refused'; readonly reason: ChildRefusal };

/**
 * Creates a run for a request: checks it, stores its files, and writes run, first execution and attachments in one
 * transaction. All callers that create runs use it: the API, reruns, child runs, schedules, deliveries.
 */
export async function submitRun(deps: SubmitDeps, submission: RunSubmission): Promise<SubmitOutcome> {
  const { executionDeps, blobs, models, contentPolicy } = deps;
  const { actor, source, schedule, child, once, tx, batch } = submission;
  const db = tx ?? executionDeps.db;
  if (once) {
    // A repeated request gets the first answer, even if its environment was deleted meanwhile.
    const earlier = await findReplay<RunAgentResponse>(db, once);
    if (earlier.kind === 'replayed') return { kind: 'submitted', response: earlier.response };
    if (earlier.kind === 'conflict') return { kind: 'idempotency_conflict' };
  }
  const wanted = await resolveRequest(db, actor.teamId, submission.request);
  if (!wanted) return { kind: 'no_such_run' };
  const { vault } = executionDeps;
  const checked = await checkRunRequest(
    { db, root: executionDeps.db, models, vault },
    actor,
    wanted.request,
    source,
    child !== undefined,
  );
  if (checked.kind !== 'ok') return checked;
  // Inside a transaction of the caller, a slow policy would keep its locks. It is checked when the run begins, as for every run.
  const verdict = tx ? undefined : await contentPolicy?.check(actor.teamId, textsOf(checked.run));
  if (verdict && verdict.kind !== 'allowed') return verdict;
  const attachments = wanted.copyOf
    ? await copyAttachments(blobs, wanted.copyOf)
    : await storeAttachments(blobs, checked.files);
  if (!attachments) return { kind: 'file_lost' };
  const run = {
    ...checked.run,
    attachments,
    ...(child ? { childLimits: child } : {}),
    ...(schedule ? { schedule } : {}),
  };
  const outcome = await createRun(executionDeps, run, { once, tx, batch });
  if (outcome.kind === 'created') return { kind: 'submitted', response: outcome.response };
  // Not after an error: the run may have been committed then, and needs its files.
  await discardAttachments(blobs, attachments);
  switch (outcome.kind) {
    case 'replayed':
      return { kind: 'submitted', response: outcome.response };
    case 'idempotency_conflict':
      return outcome;
    case 'over_budget':
      return outcome;
    case 'refused':
      return { kind: 'child_refused', reason: outcome.reason };
  }
}

/** A run that a submission would create, and why the service would refuse it after the checks of its request. */
export interface PreviewedRun {
  readonly kind: 'ok';
  readonly run: NewRun;
  readonly refusal: BudgetRefusal | Exclude<PolicyVerdict, { kind: 'allowed' }> | null;
}

/** Checks a submission as `submitRun` does, and creates and stores nothing. */
export async function previewRun(
  { executionDeps, models, contentPolicy }: SubmitDeps,
  { actor, request, source }: Pick<RunSubmission, 'actor' | 'source'> & { readonly request: RunAgentRequest },
): Promise<PreviewedRun | Exclude<RequestOutcome, { kind: 'ok' }>> {
  const { db, vault } = executionDeps;
  const checked = await checkRunRequest({ db, models, vault }, actor, request, source);
  if (checked.kind !== 'ok') return checked;
  const { run } = checked;
  const verdict = await contentPolicy?.check(actor.teamId, textsOf(run));
  const byPolicy = verdict && verdict.kind !== 'allowed' ? verdict : null;
  return { kind: 'ok', run, refusal: (await findBudgetRefusal(executionDeps, run)) ?? byPolicy };
}

/** Returns the texts in the form that the agent gets: without the values of secrets, and with the configuration of its identity. */
const textsOf = ({ prompt, config }: Pick<NewRun, 'prompt' | 'config'>) =>
  [prompt, config.base_prompt ?? ''].map((text) => ({ kind: 'prompt' as const, text }));

interface WantedRun {
  readonly request: RunAgentRequest;
  /** Stored files to copy instead of files in the request. */
  readonly copyOf?: readonly StoredAttachment[];
}

/** Returns the request to submit; null: there is no run to repeat. */
async function resolveRequest(
  db: Queryable,
  teamId: string,
  request: RunAgentRequest | RerunOf,
): Promise<WantedRun | null> {
  if (!('rerunOf' in request)) return { request };
  const rerun = await readRerun(db, teamId, request.rerunOf, request.instead);
  return rerun && { request: rerun.request, copyOf: rerun.attachments };
}
