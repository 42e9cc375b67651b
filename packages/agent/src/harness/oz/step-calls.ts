import type { Verdict } from '../../approvals/approval-request.ts';
import type { CallResult, OpenCalls } from './memory.ts';
import type { StepCall } from './model-step.ts';
import type { TurnVoice } from './session.ts';
import { runToolCall } from './tool-calls.ts';
import type { ToolContext } from './tools/tool.ts';

/** The result of a call about which a person was asked and did not answer. */
export const notAnswered = 'not done: the turn ended before the user had answered';

export interface StepCallsOptions {
  readonly context: Omit<ToolContext, 'onOutput' | 'waiting'>;
  readonly voice: TurnVoice;
  /** The decision of a person about the first call without a result, if an earlier engine asked about this call. */
  readonly given?: Verdict | undefined;
  /** Called before a call waits for a person, and awaited before the question is asked. */
  onOpen(open: OpenCalls): Promise<void>;
  /** Removes the secrets of the run from a result, which the model reads. */
  redact?: ((text: string) => string) | undefined;
  /** Called when the person has answered. */
  onAnswered(): void;
}

/**
 * Runs the calls without results one after another, and adds their results to `results`. An aborted call gets an
 * interrupted result.
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
    results.set(call.toolCallId, { text: 'interrupted: the run was stopped while this ran', failed: true });
    const verdict = decided;
    decided = undefined;
    const outcome = await runToolCall(
      call,
      {
        ...context,
        // A call asks at most once, so the given verdict is the only one that the call needs.
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
