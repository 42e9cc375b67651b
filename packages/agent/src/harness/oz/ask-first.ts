import type { ActionCategory } from '@runyard/contract/runs/conversations';
import type { ApprovalRequest, Verdict } from '../../approvals/approval-request.ts';
import type { Approvals } from '../../approvals/approvals.ts';
import type { TurnVoice } from './session.ts';

/** An action that the built-in harness is about to run. */
interface PlannedAction {
  readonly id: string;
  readonly name: string;
  readonly category: ActionCategory;
  readonly input: unknown;
  readonly title: string;
  /** State that another sandbox needs to continue the action if this sandbox ends before the person answers. */
  readonly resume?: string;
  readonly beforeAsked?: ApprovalRequest['beforeAsked'];
}

/**
 * Asks whether an action may run. Under the policy auto-approve, returns undefined and does not ask, because the action may run.
 */
export async function askFirst(
  { title, resume, beforeAsked, ...action }: PlannedAction,
  approvals: Pick<Approvals, 'policy' | 'ask'>,
  signal: AbortSignal,
): Promise<Verdict | undefined> {
  if (approvals.policy === 'auto-approve') return undefined;
  const more = { ...(resume === undefined ? {} : { resume }), ...(beforeAsked ? { beforeAsked } : {}) };
  return await approvals.ask({ kind: 'permission', title, action, ...more }, signal);
}

/** Returns the reason why an action did not run, as text for the model or a person. */
export function refusalText({ by, message }: Verdict): string {
  if (by === 'policy' && message !== undefined) return `refused: ${message}`;
  if (by === 'policy')
    return 'refused: the approval policy of this run is auto-deny, so commands and changes of files are refused; reading and searching are allowed';
  return `denied by the user${message === undefined ? '' : `, who says: ${message}`}`;
}

/** Reports that an action ended because it was denied. */
export async function reportDenied(voice: TurnVoice, toolCallId: string, text: string): Promise<void> {
  await voice.update({
    sessionUpdate: 'tool_call_update',
    toolCallId,
    status: 'failed',
    content: [{ type: 'content', content: { type: 'text', text } }],
    _meta: { runyard: { denied: true } },
  });
}
