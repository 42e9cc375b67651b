import type { Verdict } from '../../approvals/approval-request.ts';
import type { CallResult, OpenCalls } from './memory.ts';
import type { StepCall } from './model-step.ts';
import type { TurnVoice } from './session.ts';
import { runToolCall } from './tool-calls.ts';
import type { ToolContext } from './tools/tool.ts';

/** What stands for the result of a call that a person was asked about and did not answer. */
export const notAnswered = 'not done: the turn ended before the user had answered';

export interface StepCallsOptions {
  readonly context: Omit<ToolContext, 'onOutput' | 'waiting'>;
  readonly voice: TurnVoice;
  /** What a person had decided about the first call without a result before this engine was there. */
  readonly given?: Verdict | undefined;
  /** A call is about to wait for a person: awaited before the question is asked. */
  onOpen(open: OpenCalls): Promise<void>;
  /** It was answered. */
  onAnswered(): void;
}

/** Runs the calls that have no result yet, one after another, and puts what came out into `results`; those that an abort cuts short are interrupted. */
export async function runStepCalls(
  calls: readonly StepCall[],
  results: Map<string, CallResult>,
  { context, voice, given, onOpen, onAnswered }: StepCallsOptions,
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
        // A call asks once.
        approvals: verdict === undefined ? approvals : { policy: approvals.policy, ask: async () => verdict },
        async waiting(ask) {
          const answer = await ask((requestId) => onOpen({ requestId, calls, results: before }));
          onAnswered();
          return answer;
        },
      },
      voice,
    );
    if (!signal.aborted) results.set(call.toolCallId, { text: outcome.text, failed: outcome.failed });
  }
}
