import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { ApprovalRequest, Verdict } from './approval-request.ts';
import type { AskedRequest } from './open-question.ts';

/** A person's decision about a request that an earlier sandbox of the run made. */
export interface EarlierDecision {
  readonly asked: AskedRequest;
  /** Undefined if the person only continued the run. */
  readonly verdict: Verdict | undefined;
  readonly followUpId: string;
}

/** Reads the decision of a run's task. */
export function readEarlierDecision(earlier: NonNullable<AgentTask['decision']>): EarlierDecision {
  const { request: forPerson, decision, message, follow_up_id: followUpId } = earlier;
  const { request_id: id, kind, title, action } = forPerson;
  const request: ApprovalRequest = { kind, title, ...(action ? { action: { ...action, id: action.id ?? '' } } : {}) };
  const asked: AskedRequest = { id, request, forPerson, settledBy: followUpId };
  if (decision === undefined && message === undefined) return { asked, verdict: undefined, followUpId };
  const meaning = decision ?? (kind === 'question' ? 'answer' : 'deny');
  const verdict: Verdict = { decision: meaning, by: 'person', ...(message === undefined ? {} : { message }) };
  return { asked, verdict, followUpId };
}
