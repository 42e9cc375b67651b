import type { ErrorCode } from '@runyard/contract/wire/errors';

/** How a turn of a harness ended. */
export type HarnessOutcome =
  | { kind: 'succeeded'; summary: string }
  /** The agent failed at its task, or, with a `code`, the platform around it failed. `retried`: the platform must not run it again. */
  | { kind: 'failed'; summary: string; message: string; code?: ErrorCode; retried?: true }
  /** A person ended the turn; the harness keeps running. */
  | { kind: 'interrupted'; summary: string }
  | { kind: 'cancelled' };

/**
 * The result of a turn from the built-in harness, in `_meta.runyard` of its answer to `session/prompt`, because ACP has no stop reason for
 * a failure. The member is ignored from any other harness.
 */
export interface BuiltinVerdict {
  success: boolean;
  message: string;
  code?: ErrorCode;
  /** True: the failed work was repeated already, so the platform must not run it again. */
  retried?: true;
}
