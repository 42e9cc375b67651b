import type { ActionCategory } from '@runyard/contract/conversations';
import type { ApprovalRequest, Verdict } from '../../approvals/approval-request.ts';
import type { Approvals } from '../../approvals/approvals.ts';
import type { TurnVoice } from './session.ts';

/** What the built-in harness is about to do. */
interface Deed {
  readonly id: string;
  readonly name: string;
  readonly category: ActionCategory;
  readonly input: unknown;
  readonly title: string;
  /** For another sandbox, should this one go away before the answer. */
  readonly resume?: string;
  readonly beforeAsked?: ApprovalRequest['beforeAsked'];
}

/** What was decided. Undefined: it may be done; in its sandbox the built-in harness asks nobody unless the run's policy says so. */
export async function askFirst(
  { title, resume, beforeAsked, ...action }: Deed,
  approvals: Pick<Approvals, 'policy' | 'ask'>,
  signal: AbortSignal,
): Promise<Verdict | undefined> {
  if (approvals.policy === 'auto-approve') return undefined;
  const more = { ...(resume === undefined ? {} : { resume }), ...(beforeAsked ? { beforeAsked } : {}) };
  return await approvals.ask({ kind: 'permission', title, action, ...more }, signal);
}

/** Why it was not done, in words for the model or the person. */
export function refusalText({ by, message }: Verdict): string {
  if (by === 'policy')
    return 'refused: the approval policy of this run is auto-deny, so nothing is run and no file is changed; reading and searching are allowed';
  return `denied by the user${message === undefined ? '' : `, who says: ${message}`}`;
}

/** The end of an action that was not allowed. */
export async function tellDenied(voice: TurnVoice, toolCallId: string, text: string): Promise<void> {
  await voice.update({
    sessionUpdate: 'tool_call_update',
    toolCallId,
    status: 'failed',
    content: [{ type: 'content', content: { type: 'text', text } }],
    _meta: { runyard: { denied: true } },
  });
}
