import type { RunAgentResponse } from '@runyard/contract/runs/run-request';
import { findReplay, isClientAttempt, once, type RepeatableRequest } from '../../../platform/idempotency/once.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import type { ChildRefusal } from '../tree/admit-child.ts';
import {
  discardRun,
  type PreparedRun,
  type PrepareRefusal,
  prepareRun,
  type RunSubmission,
  type SubmitDeps,
} from './prepare.ts';
import { writeInBatch, writeRun } from './write-runs.ts';

/** Outcome of the write of a single run. */
type SingleOutcome =
  /** 200. The answer of the create, also to a repeated request. */
  | { readonly kind: 'submitted'; readonly response: RunAgentResponse }
  /** 409: the Idempotency-Key was used with another request. */
  | { readonly kind: 'idempotency_conflict' }
  /** 400 or 409: no run can be created below the parent. */
  | { readonly kind: 'child_refused'; readonly reason: ChildRefusal };

/** Outcome of a submission, each with the HTTP status that it becomes. */
export type SubmitOutcome = SingleOutcome | PrepareRefusal;

/** Why a submission created no run. */
export type SubmitRefusal = Exclude<SubmitOutcome, { kind: 'submitted' }>;

/** A submission whose sender may repeat it: the run is created once for `once`. */
export type SingleSubmission = RunSubmission & { readonly once?: RepeatableRequest | undefined };

/** Creates a single run for a request of a caller that has no transaction: prepares and writes it. */
export async function submitRun(
  deps: SubmitDeps,
  { once: request, ...submission }: SingleSubmission,
): Promise<SubmitOutcome> {
  if (request) {
    // A repeated request gets the first answer, even if its environment was deleted meanwhile.
    const earlier = await findReplay<RunAgentResponse>(deps.executionDeps.db, request);
    if (earlier.kind === 'replayed') return { kind: 'submitted', response: earlier.response };
    if (earlier.kind === 'conflict') return { kind: 'idempotency_conflict' };
  }
  const prepared = await prepareRun(deps, submission);
  if (prepared.kind !== 'prepared') return prepared;
  const outcome = await writeSingle(deps.executionDeps, prepared, request);
  // Not after an error: the run may have been committed then, and needs its files.
  if (outcome.kind !== 'submitted' || outcome.response.run_id !== prepared.run.id) await discardRun(deps, prepared);
  return outcome;
}

/** Writes one prepared run, and the answer to its request: all or nothing. Another answer is that of an earlier request. */
export async function writeSingle(
  deps: ExecutionDeps,
  prepared: PreparedRun,
  request?: RepeatableRequest,
): Promise<SingleOutcome> {
  const { attachments, parentRunId } = prepared.run;
  const isFirst = !request || (isClientAttempt(request) && request.attempt === 0);
  if (isFirst && attachments.length === 0 && parentRunId === undefined) {
    const response = await writeInBatch(deps, prepared, request);
    return response ? { kind: 'submitted', response } : { kind: 'idempotency_conflict' };
  }
  const attempt = await once<RunAgentResponse, ChildRefusal>(deps.db, request, async (tx) => {
    const outcome = await writeRun(tx, prepared);
    return outcome.kind === 'written'
      ? { kind: 'done', response: outcome.response }
      : { kind: 'failed', failure: outcome.reason };
  });
  switch (attempt.kind) {
    case 'conflict':
      return { kind: 'idempotency_conflict' };
    case 'failed':
      return { kind: 'child_refused', reason: attempt.failure };
    case 'done':
      return { kind: 'submitted', response: attempt.response };
  }
}
