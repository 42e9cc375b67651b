import type { FinishTask } from '@runyard/contract/agent/finish-task';
import type { HarnessOutcome } from '../acp/outcome.ts';

/** Returns the report of the end of a turn for the service. */
export function turnReport(outcome: HarnessOutcome, turn: number): FinishTask & { turn: number } {
  switch (outcome.kind) {
    case 'succeeded':
      return { turn, success: true, summary: outcome.summary };
    case 'interrupted':
      return { turn, success: true, interrupted: true, summary: outcome.summary };
    case 'failed':
      return {
        turn,
        success: false,
        summary: outcome.summary || outcome.message,
        error: {
          message: outcome.message,
          ...(outcome.code === undefined ? {} : { code: outcome.code }),
          ...(outcome.retried ? { retried: true } : {}),
        },
      };
    case 'cancelled':
      return {
        turn,
        success: false,
        summary: 'cancelled',
        error: { message: 'The agent was stopped before it had finished.' },
      };
  }
}
