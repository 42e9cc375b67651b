/** Decides which events start a run, and prepares these runs. The callers write the runs and starts in the same transaction. */

import { maxWaitingFires } from '@runyard/contract/limits';
import type { OverlapPolicy } from '@runyard/contract/schedules/schedules';
import { sqlState } from '../../../platform/store/database/connections.ts';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { readingOnce } from '../../../platform/store/database/reading-once.ts';
import { StoreUnavailable } from '../../../platform/store/database/unavailable.ts';
import {
  type PreparedRun,
  type PrepareRefusal,
  prepareRun,
  type SubmitDeps,
} from '../../../runs/runs/submit/prepare.ts';
import { mayStartRuns } from '../../../team/access/may-start-runs.ts';
import type { CountedFailure } from '../../automations/failures.ts';
import { type Lane, type Load, readLoads } from '../../history/load.ts';
import type { StartOutcome } from '../../history/write.ts';
import { reasonOf } from '../../schedules/run-of-schedule.ts';
import type { EventOfRun, Owner } from './owner.ts';

/** The rules for how many runs of one lane may be live at the same time. */
export interface StartPolicy {
  readonly overlap: OverlapPolicy;
  /** Largest number of live runs. Null: no limit with the policy `allow`, and 1 with the other policies. */
  readonly max_live_runs: number | null;
}

/** The decision about an event: create a run, create no run, or decide again later. */
export type Decision =
  /** Create a run. `cancelsPrevious`: the new run replaces older live runs, which are then cancelled. */
  | { readonly kind: 'start'; readonly cancelsPrevious: boolean }
  | { readonly kind: 'skip'; readonly reason: string }
  /** `undecided`: the policy is applied later, when the run can be prepared. */
  | { readonly kind: 'wait'; readonly reason: string; readonly undecided?: true };

/** Largest number of undecided starts in a lane. */
const maxUndecided = 100;

/** Returns how many runs of a lane may be live at the same time; null: any number. */
export const liveLimitOf = ({ overlap, max_live_runs }: StartPolicy): number | null =>
  max_live_runs ?? (overlap === 'allow' ? null : 1);

/**
 * Decides what to do with an event, from the overlap policy and the load of the lane. `held`: why no run can be prepared for the event
 * now. If the policy limits the live runs, later events wait behind a held event, so the order in the lane is kept.
 */
export function decide(policy: StartPolicy, { live, waiting, undecided }: Load, held?: string): Decision {
  const limit = liveLimitOf(policy);
  const because = held ?? (limit !== null && undecided > 0 ? 'an earlier start of this lane waits' : undefined);
  if (because !== undefined)
    return undecided < maxUndecided
      ? { kind: 'wait', reason: because, undecided: true }
      : { kind: 'skip', reason: `${because}, and ${undecided} starts wait already` };
  if (limit === null || (live < limit && waiting === 0)) return { kind: 'start', cancelsPrevious: false };
  const reason = `${live} of ${limit} runs are live`;
  switch (policy.overlap) {
    case 'allow':
    case 'skip':
      // Starts can wait here only because the policy was `queue` before. They do not delay this start.
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

/** An event for one owner. If the policy of the owner limits the live runs, the transaction has locked the owner. */
export interface Candidate {
  readonly owner: Owner;
  readonly event: EventOfRun;
  readonly lane: string | null;
  /** Why no run can be prepared now, so that the event must wait. */
  readonly held?: string;
}

/** Why a run could not be created. `passing`: the failure is temporary, so a later event may start a run although nobody has changed the owner. */
export interface Failure {
  readonly outcome: 'failed';
  readonly reason: string;
  readonly passing: boolean;
}

/** The outcome of an event. For `started`, the caller must write the run before the transaction ends. */
export type Started =
  | { readonly outcome: 'started'; readonly run: PreparedRun; readonly cancelsPrevious: boolean }
  /** `isWithheld`: no run was created, because a person must first accept stored content that the run would execute. */
  | {
      readonly outcome: 'skipped' | 'waiting';
      readonly reason: string;
      readonly isWithheld?: true;
      readonly undecided?: true;
    }
  | Failure;

/** Returns whether a refusal is temporary. */
const isPassing = ({ kind }: PrepareRefusal): boolean => !['invalid', 'forbidden', 'not_available'].includes(kind);

async function mayPersonStart(tx: Queryable, teamId: string, uid = ''): Promise<boolean> {
  const person = { teamId, kind: 'user', uid } as const;
  return (await mayStartRuns(tx, [person]))(person);
}

/** Prepares the run of an owner for an event. Fails if the executor of the owner has left the team or has become a viewer. */
export async function prepareStart(
  deps: SubmitDeps,
  tx: Queryable,
  { owner, event }: Pick<Candidate, 'owner' | 'event'>,
  cancelsPrevious: boolean,
): Promise<Started> {
  const failed = (reason: string, passing = false): Failure => ({ outcome: 'failed', reason, passing });
  if (owner.executorProblem !== null) return failed(owner.executorProblem);
  const sender = event.kind === 'delivery' ? event.delivery.sender : undefined;
  // The person may have left the team since the event arrived.
  if (sender?.trust === 'member' && !(await mayPersonStart(tx, owner.teamId, sender.person)))
    return { outcome: 'skipped', reason: `${sender.login} is not a member of the team, or may not start runs` };
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
 * Returns the failure to record for an outcome. Returns null if a run was created, and undefined if the policy allowed no attempt.
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

/** Returns the outcome in the form in which the table `starts` has it. */
export const outcomeOf = (started: Started): StartOutcome =>
  started.outcome === 'started'
    ? { outcome: 'started', runId: started.run.run.id, cancelsPrevious: started.cancelsPrevious }
    : {
        outcome: started.outcome,
        reason: started.reason,
        undecided: started.outcome === 'failed' ? undefined : started.undecided,
      };

const laneOf = ({ owner: { kind, owner }, lane }: Candidate): Lane => ({ kind, owner, lane });
const keyOf = (candidate: Candidate): string => JSON.stringify([candidate.owner.owner, candidate.lane]);

/** Reads the loads of lanes whose policy limits the number of live runs, and of lanes with an event that must wait. */
async function readLimitedLoads(tx: Queryable, candidates: readonly Candidate[]): Promise<Map<string, Load>> {
  const lanes = new Map<string, Lane>();
  for (const each of candidates)
    if (liveLimitOf(each.owner) !== null || each.held !== undefined) lanes.set(keyOf(each), laneOf(each));
  const loads = await readLoads(tx, [...lanes.values()]);
  return new Map([...lanes.keys()].map((key, index) => [key, loads[index] ?? noLoad]));
}

/** The load of an empty lane. */
export const noLoad: Load = { live: 0, waiting: 0, undecided: 0 };

/** Thrown if the code that prepares runs has failed unexpectedly. The transaction must be rolled back. */
export class Unprepared extends Error {
  /** The errors by the owners: ids of schedules, or UIDs of automations. */
  readonly causes: ReadonlyMap<string, unknown>;
  constructor(causes: ReadonlyMap<string, unknown>) {
    super('the runs could not be prepared', { cause: [...causes.values()][0] });
    this.causes = causes;
  }
}

/** PostgreSQL's error for a statement that it does not execute, because an earlier statement of the transaction has failed. */
const failedTransaction = '25P02';
/** Errors after which the database repeats the transaction. The last one: a lock was not free in time. */
const repeatable = new Set(['40001', '40P01', '55P03']);

/**
 * Decides for each event what its owner's policy allows, and prepares the runs of the events that start one. Returns the outcomes in
 * the order of the events. For each event, counts also the runs and waiting starts of the earlier events of this call in the same
 * lane. No other transaction can start runs in these lanes meanwhile, because this transaction has locked the owners whose policy
 * limits the live runs. Throws `Unprepared` if runs could not be prepared because of an unexpected error.
 */
export async function startAll(deps: SubmitDeps, tx: Queryable, candidates: readonly Candidate[]): Promise<Started[]> {
  const loads = await readLimitedLoads(tx, candidates);
  const reads = readingOnce(tx);
  const startOne = async (candidate: Candidate): Promise<Started> => {
    if (candidate.owner.disabled !== null) return { outcome: 'skipped', reason: candidate.owner.disabled };
    const load = loads.get(keyOf(candidate)) ?? noLoad;
    const decision = decide(candidate.owner, load, candidate.held);
    const count = (change: Partial<Load>) =>
      loads.has(keyOf(candidate)) && loads.set(keyOf(candidate), { ...load, ...change });
    switch (decision.kind) {
      case 'skip':
        return { outcome: 'skipped', reason: decision.reason };
      case 'wait': {
        const { reason, undecided } = decision;
        count({ waiting: load.waiting + 1, undecided: load.undecided + (undecided ? 1 : 0) });
        return { outcome: 'waiting', reason, ...(undecided ? { undecided } : {}) };
      }
      case 'start': {
        const one = await prepareStart(deps, reads, candidate, decision.cancelsPrevious);
        if (one.outcome === 'started') count({ live: load.live + 1 });
        return one;
      }
    }
  };
  // Handle the events of one lane one after the other, and the lanes in parallel. Even after a failure, wait for all lanes, because no
  // lane may use the transaction after its end.
  const started: Started[] = [];
  const lanes = Map.groupBy(candidates.entries(), ([index, each]) => (loads.has(keyOf(each)) ? keyOf(each) : index));
  const failures: (readonly [owner: string, error: unknown])[] = [];
  await Promise.all(
    [...lanes.values()].map(async (lane) => {
      for (const [index, each] of lane) {
        const one = await startOne(each).catch((error: unknown) => void failures.push([each.owner.owner, error]));
        if (one === undefined) return;
        started[index] = one;
      }
    }),
  );
  const causes = failures.filter(([, error]) => sqlState(error) !== failedTransaction);
  for (const [, error] of causes)
    if (error instanceof StoreUnavailable || repeatable.has(sqlState(error) ?? '')) throw error;
  if (causes.length > 0) throw new Unprepared(new Map(causes));
  if (failures.length > 0) throw failures[0]?.[1];
  return started;
}
