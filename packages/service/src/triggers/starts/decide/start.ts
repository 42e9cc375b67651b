/** Decides about events and prepares their runs. The callers write the runs and starts in the same transaction. */

import { maxWaitingFires } from '@runyard/contract/limits';
import type { OverlapPolicy } from '@runyard/contract/schedules/schedules';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { readingOnce } from '../../../platform/store/database/reading-once.ts';
import {
  type PreparedRun,
  type PrepareRefusal,
  prepareRun,
  type SubmitDeps,
} from '../../../runs/runs/submit/prepare.ts';
import type { CountedFailure } from '../../automations/failures.ts';
import type { EventOfRun } from '../../automations/request-for.ts';
import { type Lane, type Load, readLoads } from '../../history/load.ts';
import type { StartOutcome } from '../../history/write.ts';
import { reasonOf } from '../../schedules/run-of-schedule.ts';
import type { Owner } from './owner.ts';

/** When runs of one lane may be live at the same time. */
export interface StartPolicy {
  readonly overlap: OverlapPolicy;
  /** Null: any number for `allow`, else 1. */
  readonly max_live_runs: number | null;
}

/** The decision about an event. */
type Decision =
  /** Creates a run. `cancelsPrevious`: the new run replaces older live runs, which are cancelled. */
  | { readonly kind: 'start'; readonly cancelsPrevious: boolean }
  | { readonly kind: 'skip'; readonly reason: string }
  | { readonly kind: 'wait'; readonly reason: string };

/** Returns how many runs of a lane may be live at the same time; null: any number. */
export const liveLimitOf = ({ overlap, max_live_runs }: StartPolicy): number | null =>
  max_live_runs ?? (overlap === 'allow' ? null : 1);

/** Decides by the overlap policy, from the number of live runs in the lane and the number of starts that wait for their end. */
export function decide(policy: StartPolicy, { live, waiting }: Load): Decision {
  const limit = liveLimitOf(policy);
  if (limit === null || (live < limit && waiting === 0)) return { kind: 'start', cancelsPrevious: false };
  const reason = `${live} of ${limit} runs are live`;
  switch (policy.overlap) {
    case 'allow':
    case 'skip':
      // The waiting starts wait because of an earlier policy, so they do not delay this start.
      return live < limit ? { kind: 'start', cancelsPrevious: false } : { kind: 'skip', reason };
    case 'queue':
      return waiting < maxWaitingFires
        ? { kind: 'wait', reason }
        : { kind: 'skip', reason: `${reason}, and ${waiting} fires wait already` };
    case 'cancel_previous':
      return { kind: 'start', cancelsPrevious: live >= limit };
  }
}

export interface StartDeps extends SubmitDeps {
  readonly db: Database;
}

/** An event for one owner. If its policy limits the live runs, the transaction has locked the owner. */
export interface Candidate {
  readonly owner: Owner;
  readonly event: EventOfRun;
  readonly lane: string | null;
}

/** Why a run could not be created. `passing`: a later event may start a run without a change of the owner. */
export interface Failure {
  readonly outcome: 'failed';
  readonly reason: string;
  readonly passing: boolean;
}

/** The outcome of an event. The run of `started` must be written before the transaction ends. */
export type Started =
  | { readonly outcome: 'started'; readonly run: PreparedRun; readonly cancelsPrevious: boolean }
  /** `isWithheld`: a content of the run waits for an acceptance. */
  | { readonly outcome: 'skipped' | 'waiting'; readonly reason: string; readonly isWithheld?: true }
  | Failure;

/** Returns whether a later event may start a run without a change of the owner. */
const isPassing = ({ kind }: PrepareRefusal): boolean => !['invalid', 'forbidden', 'not_available'].includes(kind);

/** Prepares the run of an owner for an event. An editor who has left the team or became a viewer starts no run. */
export async function prepareStart(
  deps: SubmitDeps,
  tx: Queryable,
  { owner, event }: Pick<Candidate, 'owner' | 'event'>,
  cancelsPrevious: boolean,
): Promise<Started> {
  const failed = (reason: string, passing = false): Failure => ({ outcome: 'failed', reason, passing });
  if (owner.editorProblem !== null) return failed(owner.editorProblem);
  const submission = owner.submissionFor(event);
  if (typeof submission === 'string') return failed(submission);
  const prepared = await prepareRun(deps, submission, tx);
  if (prepared.kind === 'prepared') return { outcome: 'started', run: prepared, cancelsPrevious };
  const reason = reasonOf(prepared, owner.nameOf);
  return prepared.kind === 'withheld'
    ? { outcome: 'skipped', reason, isWithheld: true }
    : failed(reason, isPassing(prepared));
}

/**
 * Returns the failure to count for a result. Returns null if a run was created, and undefined if no run was tried.
 */
export function resultOf(started: Started, countsPassing: boolean): CountedFailure | null | undefined {
  switch (started.outcome) {
    case 'started':
      return null;
    case 'failed':
      return { reason: started.reason, counts: countsPassing || !started.passing };
    case 'skipped':
    case 'waiting':
      return started.isWithheld ? { reason: started.reason, counts: false } : undefined;
  }
}

/** Returns the runs to write. */
export const runsOf = (started: readonly Started[]): PreparedRun[] =>
  started.flatMap((each) => (each.outcome === 'started' ? [each.run] : []));

/** Returns the outcome in the form of the history. */
export const outcomeOf = (started: Started): StartOutcome =>
  started.outcome === 'started'
    ? { outcome: 'started', runId: started.run.run.id, cancelsPrevious: started.cancelsPrevious }
    : { outcome: started.outcome, reason: started.reason };

const laneOf = ({ owner: { kind, owner }, lane }: Candidate): Lane => ({ kind, owner, lane });
const keyOf = (candidate: Candidate): string => JSON.stringify([candidate.owner.owner, candidate.lane]);

/** Reads the loads of lanes whose policy limits the number of live runs. */
async function readLimitedLoads(tx: Queryable, candidates: readonly Candidate[]): Promise<Map<string, Load>> {
  const lanes = new Map<string, Lane>();
  for (const each of candidates) if (liveLimitOf(each.owner) !== null) lanes.set(keyOf(each), laneOf(each));
  const loads = await readLoads(tx, [...lanes.values()]);
  return new Map([...lanes.keys()].map((key, index) => [key, loads[index] ?? noLoad]));
}

const noLoad: Load = { live: 0, waiting: 0 };

/**
 * Decides about events by the policies of their owners, and prepares the runs of events that start. Returns the outcomes in the order of
 * the events. Each event counts the runs and waiting starts of the events before it in its lane. The loads stay correct, because the
 * lock of the owner prevents other starts in its limited lanes.
 */
export async function startAll(deps: SubmitDeps, tx: Queryable, candidates: readonly Candidate[]): Promise<Started[]> {
  const loads = await readLimitedLoads(tx, candidates);
  const reads = readingOnce(tx);
  const startOne = async (candidate: Candidate): Promise<Started> => {
    if (candidate.owner.disabled !== null) return { outcome: 'skipped', reason: candidate.owner.disabled };
    const load = loads.get(keyOf(candidate));
    const decision = decide(candidate.owner, load ?? noLoad);
    const count = (change: Partial<Load>) => load && loads.set(keyOf(candidate), { ...load, ...change });
    switch (decision.kind) {
      case 'skip':
        return { outcome: 'skipped', reason: decision.reason };
      case 'wait':
        count({ waiting: (load?.waiting ?? 0) + 1 });
        return { outcome: 'waiting', reason: decision.reason };
      case 'start': {
        const one = await prepareStart(deps, reads, candidate, decision.cancelsPrevious);
        if (one.outcome === 'started') count({ live: (load?.live ?? 0) + 1 });
        return one;
      }
    }
  };
  // Handles the starts of one lane one after the other, and the lanes in parallel. Waits for all lanes even after a failure, because none
  // of them may use the transaction after its end.
  const started: Started[] = [];
  const lanes = Map.groupBy(candidates.entries(), ([index, each]) => (loads.has(keyOf(each)) ? keyOf(each) : index));
  const taken = await Promise.allSettled(
    [...lanes.values()].map(async (lane) => {
      for (const [index, each] of lane) started[index] = await startOne(each);
    }),
  );
  for (const each of taken) if (each.status === 'rejected') throw each.reason;
  return started;
}
