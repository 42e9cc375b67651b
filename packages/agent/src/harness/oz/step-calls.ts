import type { Verdict } from '../../approvals/approval-request.ts';
import type { CallResult, OpenCalls } from './memory.ts';
import type { StepCall } from './model-step.ts';
import type { TurnVoice } from './session.ts';
import { type CallContext, runToolCall } from './tool-calls.ts';

/** The result of a call if a person was asked about the call and the turn ended before the answer. */
export const notAnswered = 'not done: the turn ended before the user had answered';

export interface StepCallsOptions {
  readonly context: Omit<CallContext, 'waiting'>;
  readonly voice: TurnVoice;
  /** The decision of a person about the first call without a result, if an earlier engine asked about this call. */
  readonly given?: Verdict | undefined;
  /** Called before the agent asks a person about a call. The agent asks only after the promise has resolved. */
  onOpen(open: OpenCalls): Promise<void>;
  /** Removes the secrets of the run from a result, which the model reads. */
  redact?: ((text: string) => string) | undefined;
  /** Called when the person has answered. */
  onAnswered(): void;
}

/**
 * Runs the calls that have no results, one after another, and adds their results to `results`. The result of an aborted call says that
 * the call was interrupted.
 */
export async function runStepCalls(
  calls: readonly StepCall[],
  results: Map<string, CallResult>,
  { context, voice, given, onOpen, onAnswered, redact = (text) => text }: StepCallsOptions,
): Promise<void> {
  const { approvals, signal } = context;
  let decided = given;
  for (const call of calls) {
    if (results.has(call.toolCallId)) continue;
    signal.throwIfAborted();
    const before = [...results];
    results.set(call.toolCallId, { text: 'interrupted: the run was stopped while this action ran', failed: true });
    const verdict = decided;
    decided = undefined;
    const outcome = await runToolCall(
      call,
      {
        ...context,
        // Use the given verdict as the answer to any request of this call, because a call asks a person at most once.
        approvals: verdict === undefined ? approvals : { policy: approvals.policy, ask: async () => verdict },
        async waiting(ask) {
          const answer = await ask((requestId) => onOpen({ requestId, calls, results: before }));
          onAnswered();
          return answer;
        },
      },
      voice,
    );
    const { text, failed, images } = outcome;
    if (!signal.aborted)
      results.set(call.toolCallId, { text: redact(text), failed, ...(images?.length ? { images } : {}) });
  }
}
