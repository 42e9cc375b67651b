/** Translates between requests of the API and submissions of runs. */

import { maxLiveInTree, maxRunsInTree } from '@runyard/contract/limits';
import { claimableSources, type RunSourceType } from '@runyard/contract/runs/states';
import { idempotencyConflict } from '../../../platform/idempotency/once.ts';
import { invalid, notFound, type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import type { RequestOrigin } from '../../../platform/serving/served-route.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { refusedByPolicy } from '../../../team/content-policy/content-policy.ts';
import type { ChildRefusal } from '../tree/admit-child.ts';
import type { PrepareRefusal } from './prepare.ts';
import type { SubmitRefusal } from './submit.ts';

/**
 * Returns the source of the created run. This is the source in the request, if the owner of the key may set it. Otherwise it is the command
 * if the User-Agent header names the `runyard` command, and the API for all other clients.
 */
export function sourceOf(
  { userAgent, apiSource }: Pick<RequestOrigin, 'userAgent' | 'apiSource'>,
  { creator }: { readonly creator: Pick<Principal['creator'], 'kind'> },
): RunSourceType {
  const claimed = claimableSources[creator.kind].find((source) => source === apiSource?.toUpperCase());
  return claimed ?? (userAgent?.startsWith('runyard-cli') ? 'CLI' : 'API');
}

/** Returns the refusal of a submission that created no run. */
export function refusedSubmission(outcome: SubmitRefusal): Refusal {
  switch (outcome.kind) {
    case 'idempotency_conflict':
      return idempotencyConflict();
    case 'invalid':
      return invalid(outcome.faults);
    case 'forbidden':
    case 'withheld':
      return refuse('not_authorized', { detail: outcome.detail });
    case 'not_available':
      return refuse('feature_not_available', { detail: outcome.detail });
    case 'over_budget':
      return refuse(outcome.code, { detail: outcome.detail });
    case 'storage_full':
      return refuse('invalid_request', { status: 413, detail: outcome.detail });
    case 'model_outage':
      return refuse('resource_unavailable', {
        status: 503,
        detail: outcome.detail,
        headers: { 'retry-after': String(outcome.retryAfterSeconds) },
      });
    case 'policy_violation':
    case 'policy_unavailable':
      return refusedByPolicy(outcome);
    case 'no_such_run':
      return notFound('run');
    case 'file_lost':
      return refuse('conflict', {
        detail: 'A file that came with the run is lost; create a new run and send it again.',
      });
    case 'child_refused':
      return refusedChild(outcome.reason);
  }
}

/** Returns the reason why no child can be created for the run that the request names as parent. */
export function refusedChild(reason: ChildRefusal): Refusal {
  switch (reason) {
    case 'parent_gone':
      return invalid([{ path: 'parent_run_id', message: 'there is no such run' }]);
    case 'parent_cancelled':
      return refuse('conflict', {
        detail:
          'The parent, or a run above it, was cancelled together with the runs below it. Continue the parent with a follow-up first, or create the run without parent_run_id.',
      });
    case 'not_at_work':
      return refuse('conflict', {
        detail:
          'The turn of this run has ended, or the run was cancelled. Only a run with a turn in progress can start or message runs.',
      });
    case 'too_many_children':
      return refuse('conflict', {
        detail: 'This run has reached child_runs.max_live. Await or cancel some of its child runs first.',
      });
    case 'tree_used_up':
      return refuse('conflict', {
        detail: `Agents have started ${maxRunsInTree} runs in this tree. Start a run outside of it, or delete some that have ended.`,
      });
    case 'tree_full':
      return refuse('conflict', {
        detail: `${maxLiveInTree} runs of this tree are live already. Await or cancel some first.`,
      });
  }
}

/** Returns why the service itself created no run, in words for a timeline or a list. */
export function reasonOf(refusal: PrepareRefusal): string {
  if (refusal.kind === 'invalid')
    return refusal.faults
      .map(({ path, message }) => `${path}: ${message}`)
      .join('; ')
      .slice(0, 2000);
  if ('detail' in refusal) return refusal.detail;
  return refusal.kind === 'no_such_run' ? 'The run was deleted.' : 'A file that came with the run is lost.';
}
