import type { RunState } from '@runyard/contract/runs/states';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { ExecutionDeps } from '../deps.ts';
import type { Status } from '../transitions/transition.ts';
import { cancelBlocked, cancelLive, cancelQueued } from '../transitions/transitions.ts';

/** `already_ended`, `pending`: nothing was changed. A run is PENDING for 30 s at most. */
export type LockedCancelOutcome = 'cancelled' | 'already_ended' | 'pending';

interface LockedRun {
  readonly runId: string;
  readonly executionId: string;
  readonly state: RunState;
  /** Payload of the timeline event. */
  readonly payload?: Record<string, unknown>;
  readonly status?: Status;
  /** True: the runs below are cancelled too. */
  readonly cascades?: boolean;
}

/** Cancels a run by its state. The transaction has locked the run's row. */
export async function cancelLocked(deps: ExecutionDeps, tx: Queryable, run: LockedRun): Promise<LockedCancelOutcome> {
  const { state, cascades = false, ...target } = run;
  const args = { stop_seconds: deps.timing.cancelGraceSeconds, cascades };
  switch (state) {
    case 'SUCCEEDED':
    case 'FAILED':
    case 'ERROR':
    case 'CANCELLED':
      return 'already_ended';
    case 'PENDING':
      return 'pending';
    case 'QUEUED':
      await cancelQueued(tx, { ...target, args });
      return 'cancelled';
    case 'CLAIMED':
    case 'INPROGRESS':
      await cancelLive(tx, { ...target, args });
      return 'cancelled';
    case 'BLOCKED':
      await cancelBlocked(tx, { ...target, args });
      return 'cancelled';
  }
}
