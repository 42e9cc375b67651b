/**
 * Submits and writes runs. Only the functions of this file make the answer for a prepared run, so there is no answer for a run that was not
 * written.
 */

import { randomUUIDv7 } from 'node:crypto';
import { membersWithoutEffect } from '@runyard/contract/runs/config';
import type { RunAgentResponse } from '@runyard/contract/runs/run-request';
import { type ClientAttempt, recordFirstAnswers } from '../../../platform/idempotency/client-answers.ts';
import { findReplay, isClientAttempt, once, type RepeatableRequest } from '../../../platform/idempotency/once.ts';
import { batched } from '../../../platform/store/database/batched.ts';
import { afterCommit, type Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import { creationEntryColumns, creationEntryOf, insertCreationEntries } from '../../../team/access/audit/record.ts';
import { toWithheldRight } from '../../../team/access/contents/run-rights.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { tellQueue } from '../../executions/notices.ts';
import {
  creationSeq,
  insertCreationEvents,
  poolsOfNewRuns,
  queueFirstExecutions,
} from '../../executions/queue/first-execution.ts';
import { noticeCreated } from '../../executions/tracing/notice.ts';
import { countQueued } from '../../executions/transitions/transition.ts';
import { attachmentParameters, insertAttachmentsOf } from '../../files/attachments/insert.ts';
import { enqueueDeliveries, tellSubscribers } from '../../subscriptions/enqueue.ts';
import { createdRecord, insertRuns, toRecord } from '../read/columns.ts';
import { type ChildRefusal, refuseChild } from '../tree/admit-child.ts';
import type { NewRun } from './new-run.ts';
import {
  discardRun,
  type PreparedRun,
  type PrepareRefusal,
  prepareRun,
  type RunSubmission,
  type SubmitDeps,
} from './prepare.ts';

/** Common table expressions that write the files of runs. Their parameters are the last two of `parametersOfRuns`. */
const insertFiles = `attachment AS (${insertAttachmentsOf('$2', '$3')}
    )`;

/**
 * Defines a statement that writes all runs of a batch, with their first executions, events and deliveries to subscribers, and notifies the
 * dispatchers. `more`: further common table expressions. Each table that a statement names takes time, even if no row
 * goes there.
 */
const defineInsert = (name: string, more: string, told = '') =>
  defineStatement({
    name,
    text: `
    WITH input AS (
      SELECT * FROM jsonb_to_recordset($1::jsonb) AS i(${createdRecord}, creation jsonb, waits_for_place boolean,
        answer_id uuid, answer_principal text, answer_hash text, answer jsonb, ${creationEntryColumns})
    ), ${insertRuns('input')}, execution AS (${queueFirstExecutions('input')}
    ), event AS (${insertCreationEvents('input')}
    ), delivery AS (${enqueueDeliveries('run.created', 'QUEUED', `(SELECT *, ${creationSeq} AS event_seq FROM input)`)}
    ), ${more}
    SELECT ${tellQueue('pool')}, ${tellSubscribers('delivery')}${told} FROM (${poolsOfNewRuns('input')}) pools`,
    row: {},
  });

/**
 * Defines a statement that writes runs with their files. `more`: further common table expressions, if the caller writes other rows too.
 * Their parameters come after the parameters of `parametersOfRuns`.
 */
export const defineInsertRuns = (name: string, more: string, told: string) =>
  defineInsert(name, `${insertFiles}, ${more}`, `, ${told}`);

/** A common table expression that writes the entries of the audit log. Only runs that a key created have such an entry. */
const insertEntries = `audit AS (${insertCreationEntries('input')}
    )`;

const insertWithFiles = defineInsert('insert_runs_and_files', insertFiles);
const insertSingle = defineInsert('insert_run_and_files', `${insertFiles}, ${insertEntries}`);
const insertWithAnswers = defineInsert('insert_runs_and_answers', `${insertEntries}, ${recordFirstAnswers('input')}`);

/** Returns the payload of the first timeline event; undefined if no right is withheld and each member of the configuration has an effect. */
function creationPayload({ rights: { withheld }, config }: NewRun) {
  const ignored = membersWithoutEffect(config);
  if (withheld.length + ignored.length === 0) return undefined;
  return {
    ...(withheld.length > 0 ? { withheld: withheld.map(toWithheldRight) } : {}),
    ...(ignored.length > 0 ? { ignored_fields: ignored } : {}),
  };
}

const toRow = (run: NewRun) => ({
  ...toRecord({
    ...run,
    creatorKind: run.creator.kind,
    creatorUid: run.creator.uid,
    executorKind: run.executor.kind,
    executorUid: run.executor.uid,
    ...(run.schedule === undefined
      ? {}
      : { scheduleId: run.schedule.id, scheduleName: run.schedule.name, scheduleCron: run.schedule.cronSchedule }),
    conversationId: run.conversationId ?? randomUUIDv7(),
    currentExecutionId: randomUUIDv7(),
    isOfFactory: run.contents.some(({ kind }) => kind === 'definition'),
  }),
  creation: creationPayload(run),
  waits_for_place: run.waitsForPlace ?? false,
  ...creationEntryOf(run.by),
});

/** When the transaction commits, counts the written runs and begins their traces. */
export function countCreated(db: Queryable, runs: readonly NewRun[]): void {
  countQueued(db, runs.length);
  if (runs.length === 0) return;
  afterCommit(db, () => {
    for (const { id, source, by } of runs) {
      const { receivedMs, traceparent } = by?.from ?? {};
      const request = receivedMs === undefined ? undefined : { receivedMs, ...(traceparent ? { traceparent } : {}) };
      noticeCreated({ id, source, request });
    }
  });
}

/** Returns the answer to the request for a run that was written. */
const responseOf = ({ run, atCapacity }: PreparedRun): RunAgentResponse => ({
  run_id: run.id,
  task_id: run.id,
  state: 'QUEUED',
  at_capacity: atCapacity,
});

/** Returns the parameters $1 to $3 of a statement of `defineInsertRuns`. Throws for a run that has a parent. */
export function parametersOfRuns(prepared: readonly PreparedRun[]): unknown[] {
  const runs = prepared.map(({ run }) => run);
  if (runs.some(({ parentRunId }) => parentRunId !== undefined))
    throw new Error('Use writeRun for a child run: only writeRun checks its limits.');
  return rowsOf(runs);
}

const rowsOf = (runs: readonly NewRun[]): unknown[] => [
  JSON.stringify(runs.map(toRow)),
  ...attachmentParameters(runs.map(({ id, attachments }) => ({ runId: id, attachments }))),
];

/**
 * Writes runs without a parent, each with its first execution queued and the rows of its attachments, in one statement. Returns the
 * answers in the order of the runs. The answers are valid only if the transaction commits.
 */
export async function writeRuns(tx: Queryable, prepared: readonly PreparedRun[]): Promise<RunAgentResponse[]> {
  if (prepared.length > 0) await tx.query(insertWithFiles, parametersOfRuns(prepared));
  countCreated(
    tx,
    prepared.map(({ run }) => run),
  );
  return prepared.map(responseOf);
}

/** Outcome of writing one prepared run in the transaction. */
export type WriteOutcome =
  | { readonly kind: 'written'; readonly response: RunAgentResponse }
  /** No child can be created for the parent. */
  | { readonly kind: 'child_refused'; readonly reason: ChildRefusal };

/** Writes one run. If the run has a parent, first checks, under the locks of the run's ancestors, whether the run may be created. */
export async function writeRun(tx: Queryable, prepared: PreparedRun): Promise<WriteOutcome> {
  const { run } = prepared;
  const { parentRunId, ancestorIds, childLimits } = run;
  let waitsForPlace = false;
  if (parentRunId !== undefined) {
    const reason = await refuseChild(tx, { parentRunId, ancestorIds }, childLimits);
    waitsForPlace = reason === 'too_many_children';
    if (reason && !waitsForPlace) return { kind: 'child_refused', reason };
  }
  await tx.query(insertSingle, rowsOf([{ ...run, waitsForPlace }]));
  countCreated(tx, [run]);
  return { kind: 'written', response: responseOf(prepared) };
}

/** A run to write, and the answer to record for a request of a published client. */
interface RunOfBatch {
  readonly run: NewRun;
  readonly answerOf?: { readonly request: ClientAttempt; readonly response: RunAgentResponse };
}

function toRowOfBatch({ run, answerOf }: RunOfBatch) {
  if (!answerOf) return toRow(run);
  const { principal, requestHash } = answerOf.request;
  return {
    ...toRow(run),
    answer_id: run.id,
    answer_principal: principal,
    answer_hash: requestHash.toString('hex'),
    answer: answerOf.response,
  };
}

/**
 * Writes a run without files and parent. Runs that arrive while another batch is being written are written together in the next batch.
 * Returns null if nothing was written because the client had disconnected: a repeated request of the client may have created the run
 * meanwhile.
 */
async function writeInBatch(
  deps: ExecutionDeps,
  prepared: PreparedRun,
  request?: ClientAttempt,
): Promise<RunAgentResponse | null> {
  const { run } = prepared;
  const response = responseOf(prepared);
  await writeBatched(deps, { run, ...(request ? { answerOf: { request, response } } : {}) });
  return !request || request.answer.id === run.id ? response : null;
}

const writeBatched = batched<ExecutionDeps, RunOfBatch>(100, async (deps, items) => {
  const present = items.filter(({ answerOf }) => !answerOf?.request.isGone());
  if (present.length === 0) return;
  await deps.db.query(insertWithAnswers, [JSON.stringify(present.map(toRowOfBatch))]);
  countCreated(
    deps.db,
    present.map(({ run }) => run),
  );
  for (const { run, answerOf } of present) if (answerOf) answerOf.request.answer.id = run.id;
});

/** Outcome of the write of a single run. */
type SingleOutcome =
  /** 200. The answer of the request that created the run. A repeated request gets the same answer. */
  | { readonly kind: 'submitted'; readonly response: RunAgentResponse }
  /** 409: the Idempotency-Key was used with another request. */
  | { readonly kind: 'idempotency_conflict' }
  /** 400 or 409: no child can be created for the parent. */
  | { readonly kind: 'child_refused'; readonly reason: ChildRefusal };

/** Outcome of a submission. Some comments begin with the HTTP status of the outcome. */
export type SubmitOutcome = SingleOutcome | PrepareRefusal;

/** The reason why a submission created no run. */
export type SubmitRefusal = Exclude<SubmitOutcome, { kind: 'submitted' }>;

/** A submission that the sender may repeat. All submissions with the same `once` together create only one run. */
export type SingleSubmission = RunSubmission & { readonly once?: RepeatableRequest | undefined };

/** Prepares and writes one run for a request. Is for callers without an open transaction; other callers use `writeRun` or `writeRuns`. */
export async function submitRun(
  deps: SubmitDeps,
  { once: request, ...submission }: SingleSubmission,
): Promise<SubmitOutcome> {
  if (request) {
    // Look for the stored answer before the checks: a repeated request gets the first answer even if the environment was deleted meanwhile.
    const earlier = await findReplay<RunAgentResponse>(deps.executionDeps.db, request);
    if (earlier.kind === 'replayed') return { kind: 'submitted', response: earlier.response };
    if (earlier.kind === 'conflict') return { kind: 'idempotency_conflict' };
  }
  const prepared = await prepareRun(deps, submission);
  if (prepared.kind !== 'prepared') return prepared;
  const outcome = await writeSingle(deps.executionDeps, prepared, request);
  // Keep the files after an error, because the run may have been committed and then needs them.
  if (outcome.kind !== 'submitted' || outcome.response.run_id !== prepared.run.id) await discardRun(deps, prepared);
  return outcome;
}

/**
 * Writes one prepared run and the answer to its request, either both or none. If the result has the id of another run, it is the answer to
 * an earlier, identical request.
 */
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
