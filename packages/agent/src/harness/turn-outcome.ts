import type { PromptResponse } from '@agentclientprotocol/sdk';
import type { BuiltinVerdict, HarnessOutcome } from '../acp/outcome.ts';
import type { HarnessProfile } from './profile.ts';

/** Converts the harness's answer to a prompt into the outcome of the turn. `lastText` is the end of the turn's last message. */
export function outcomeOf(
  response: PromptResponse,
  { name, capabilities }: HarnessProfile,
  lastText: string,
): HarnessOutcome {
  const verdict = capabilities.trustedVerdict ? (response._meta?.runyard as BuiltinVerdict | undefined) : undefined;
  const summary = lastText.trim();
  if (verdict !== undefined && !verdict.success) {
    return {
      kind: 'failed',
      summary,
      message: verdict.message,
      ...(verdict.code === undefined ? {} : { code: verdict.code }),
      ...(verdict.retried ? { retried: true } : {}),
    };
  }
  switch (response.stopReason) {
    case 'end_turn':
      return { kind: 'succeeded', summary };
    case 'cancelled':
      return { kind: 'failed', summary, message: `The harness ${name} cancelled its turn by itself.` };
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
      return { kind: 'failed', summary, message: 'The model refused to continue with this prompt.' };
    default:
      return {
        kind: 'failed',
        summary,
        message: `The agent stopped for an unknown reason: ${String(response.stopReason)}`,
      };
  }
}
