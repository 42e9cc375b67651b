/** Notifies the tracer of this process about runs. Does nothing while tracing is off. */
import type { RunState } from '@runyard/contract/runs/states';

/** Describes a new run. */
export interface CreatedRun {
  readonly id: string;
  readonly source: string;
  /**
   * The time at which the request that created the run arrived, and the trace that the request names. Absent if no request created the run.
   */
  readonly request?: { readonly receivedMs: number; readonly traceparent?: string } | undefined;
}

/**
 * Describes the end of a turn, or the end of an execution that ended before its first turn. Times are milliseconds since 1970 by the
 * database's clock.
 */
export interface EndedTurn {
  readonly runId: string;
  readonly executionId: string;
  readonly state: RunState;
  readonly code: string | undefined;
  readonly wantedMs: number;
  readonly endMs: number;
}

export interface RunTracer {
  created(run: CreatedRun): void;
  ended(turn: EndedTurn): void;
}

let tracer: RunTracer | undefined;

/** From now on, sends all notices to `next`. Returns a function that stops this: `next` then gets no more notices. */
export function traceRunsWith(next: RunTracer): () => void {
  tracer = next;
  return () => {
    if (tracer === next) tracer = undefined;
  };
}

export const noticeCreated = (run: CreatedRun): void => tracer?.created(run);
export const noticeEnded = (turn: EndedTurn): void => tracer?.ended(turn);
