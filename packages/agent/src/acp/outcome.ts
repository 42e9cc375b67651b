import type { FinishTask } from '@runyard/contract/agent/finish-task';
import type { ErrorCode } from '@runyard/contract/wire/errors';

/** How a turn of a harness ended. */
export type HarnessOutcome =
  | { kind: 'succeeded'; summary: string; checks?: FinishTask['checks'] }
  /**
   * Without a `code`, the agent failed at its task. With a `code`, the platform failed. `retried`: the platform must not run the turn
   * again.
   */
  | { kind: 'failed'; summary: string; message: string; code?: ErrorCode; retried?: true }
  /** A person ended the turn but not the run, so the harness keeps running. */
  | { kind: 'interrupted'; summary: string }
  | { kind: 'cancelled' };

/**
 * The result of a turn, which the built-in harness sends in `_meta.runyard` of its answer to `session/prompt`. ACP has no stop reason for
 * a failure. The agent ignores this member in answers of other harnesses.
 */
export interface BuiltinVerdict {
  success: boolean;
  message: string;
  code?: ErrorCode;
  /** True: the failed work was already repeated, so the platform must not run it again. */
  retried?: true;
}
