import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import type { AgentRequest } from '@runyard/contract/runs/approvals';
import type { FollowUp } from '../service/inbox.ts';
import type { ApprovalRequest, Verdict } from './approval-request.ts';

export interface AskedRequest {
  readonly id: string;
  readonly request: ApprovalRequest;
  readonly forPerson: AgentRequest;
  /** Id of the follow-up that settled the request. */
  settledBy?: string;
}

export interface OpenQuestionOptions {
  readonly emit: (event: AgentEventBody) => void;
  /** Returns the step of the conversation that the events name. */
  readonly stepId: () => string;
  readonly emitDecided: (id: string, request: ApprovalRequest, verdict: Verdict, followUpId: string) => void;
  /** Called when a person has approved the action for the rest of the run. */
  readonly onAllowed: (forPerson: AgentRequest) => void;
}

/** Returns the message of a follow-up; undefined if it has only white space. */
export const messageOf = ({ message }: FollowUp): string | undefined => (message.trim() === '' ? undefined : message);

/** The question that a person has not answered yet. At most one question is open at a time. */
export function openQuestion({ emit, stepId, emitDecided, onAllowed }: OpenQuestionOptions) {
  let open: { asked: AskedRequest; settle: (verdict: Verdict) => void; fail: (reason: Error) => void } | undefined;
  const isAwaited = (followUp: FollowUp): boolean => open !== undefined && followUp.answers === open.asked.id;
  return {
    isAwaited,

    /** Asks a person, and waits for the answer. Rejects when the signal aborts. */
    async ask(asked: AskedRequest, signal: AbortSignal): Promise<Verdict> {
      const { promise, resolve, reject } = Promise.withResolvers<Verdict>();
      open = { asked, settle: resolve, fail: reject };
      const onAbort = () => reject(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      emit({ type: 'blocked', step_id: stepId(), request: asked.forPerson });
      try {
        return await promise;
      } finally {
        signal.removeEventListener('abort', onAbort);
        if (open?.asked === asked) open = undefined;
      }
    },

    /** Uses a follow-up as the answer. Returns false if the message of the follow-up must also run as a turn. */
    answer(followUp: FollowUp): boolean {
      if (open === undefined || !isAwaited(followUp)) return false;
      const { asked, settle } = open;
      open = undefined;
      const { id, request, forPerson } = asked;
      if (followUp.decision === 'approve' && followUp.allow_for === 'run') onAllowed(forPerson);
      if (followUp.late) {
        settle({ decision: 'approve', by: 'person' });
        return false;
      }
      asked.settledBy = followUp.id;
      const message = messageOf(followUp);
      const decision = followUp.decision ?? (request.messageIsTurn ? 'deny' : 'answer');
      // An approval never becomes a turn, because after a crash the service would deliver the turn again, and the agent could run the
      // approved action twice.
      const hasMessage = message !== undefined || followUp.decision === undefined;
      const isTurn = request.messageIsTurn === true && decision === 'deny' && hasMessage;
      const verdict: Verdict = { decision, by: 'person', ...(message === undefined ? {} : { message }) };
      if (!isTurn) emit({ type: 'follow_up_taken', follow_up_id: followUp.id });
      emitDecided(id, request, verdict, followUp.id);
      settle(verdict);
      return !isTurn;
    },

    /** Fails the request if it is the open one. */
    refused(requestId: string, reason: string): void {
      if (open?.asked.id !== requestId) return;
      const { fail } = open;
      open = undefined;
      fail(new Error(`The question could not be put to a person: ${reason}`));
    },
  };
}
