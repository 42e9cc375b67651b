import type { PromptResponse } from '@agentclientprotocol/sdk';
import type { BuiltinVerdict, HarnessOutcome } from '../acp/outcome.ts';

/** Returns how a turn ended that the harness answered. `builtin`: its verdict about its own end is believed. */
export function outcomeOf(
  response: PromptResponse,
  options: { readonly harness: string; readonly builtin: boolean },
  lastText: string,
): HarnessOutcome {
  const verdict = options.builtin ? (response._meta?.runyard as BuiltinVerdict | undefined) : undefined;
  const summary = lastText.trim();
  if (verdict !== undefined && !verdict.success) {
    return {
      kind: 'failed',
      summary,
      message: verdict.message,
      ...(verdict.code === undefined ? {} : { code: verdict.code }),
    };
  }
  switch (response.stopReason) {
    case 'end_turn':
      return { kind: 'succeeded', summary };
    case 'cancelled':
      return { kind: 'failed', summary, message: `The harness ${options.harness} cancelled its turn by itself.` };
    case 'max_tokens':
      return {
        kind: 'failed',
        summary,
        message:
          'The agent stopped because the model reached its limit of tokens. Continue the run, or give it a smaller task.',
      };
    case 'max_turn_requests':
      return {
        kind: 'failed',
        summary,
        message:
          'The agent stopped because it reached its limit of model requests in one turn. Continue the run, or give it a smaller task.',
      };
    case 'refusal':
      return { kind: 'failed', summary, message: 'The model refused to go on with this prompt.' };
    default:
      return {
        kind: 'failed',
        summary,
        message: `The agent stopped for a reason that is not known here: ${String(response.stopReason)}`,
      };
  }
}
