import type { AgentRequest, Decision } from '@runyard/contract/runs/approvals';
import { decisionOpening } from '@runyard/contract/runs/decision-opening';

/** The answer to a request. If both `decision` and `message` are absent, the request is still open. */
export interface Answer {
  readonly decision?: Decision | undefined;
  readonly message?: string | undefined;
}

const maxInputLength = 4_000;

/** Returns a request and its answer as text, for a harness that does not wait for the answer any more. */
export function decisionText(request: Omit<AgentRequest, 'request_id'>, { decision, message }: Answer): string {
  const { kind, title, action } = request;
  const reasonText = message === undefined ? '' : ` The user's words: ${message}`;
  if (kind === 'question') {
    const short = decision === undefined ? '' : decision === 'approve' ? ' The answer is yes.' : ' The answer is no.';
    return `${decisionOpening}: ${title}\n${`${short}${reasonText}`.trim() || 'Nobody has answered yet.'}`;
  }
  const input = JSON.stringify(action?.input) ?? '';
  const inputNote = input === '' || input.length > maxInputLength ? '' : ` (input: ${input})`;
  const requestText = `${decisionOpening} for permission${action ? ` to use ${action.name}` : ''}: ${title}${inputNote}`;
  switch (decision) {
    case 'approve':
      return `${requestText}\nThe user approved it.${reasonText} It has not been done yet: do it now, and continue with the task.`;
    case 'deny':
      return `${requestText}\nThe user denied it.${reasonText} Do not do it: find another way, or end if there is none.`;
    case undefined:
      return message === undefined
        ? `${requestText}\nNobody has decided yet. It has not been done.`
        : `${requestText}\nThe user did not approve it. It has not been done.${reasonText}`;
  }
}
