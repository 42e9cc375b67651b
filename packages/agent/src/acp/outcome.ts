import type { ErrorCode } from '@runyard/contract/errors';

/** How a turn of a harness ended. */
export type HarnessOutcome =
  | { kind: 'succeeded'; summary: string }
  /** The agent failed at its task, or (`code`) something around it did. */
  | { kind: 'failed'; summary: string; message: string; code?: ErrorCode }
  /** Someone asked for the end of the turn; the harness lives on. */
  | { kind: 'interrupted'; summary: string }
  | { kind: 'cancelled' };

/**
 * What the built-in harness says about its end in `_meta.runyard` of its answer to `session/prompt`: ACP's stop reasons
 * do not know failure. Believed only of the harness in this process.
 */
export interface BuiltinVerdict {
  success: boolean;
  message: string;
  code?: ErrorCode;
}
