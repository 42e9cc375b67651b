import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { AgentRequest, ApprovalPolicy } from '@runyard/contract/runs/approvals';
import type { FollowUp } from '../service/inbox.ts';
import type { ApprovalRequest, Verdict } from './approval-request.ts';
import { type ApprovalsOptions, makeDecider } from './decider.ts';
import { decisionText } from './decision-text.ts';
import { type AskedRequest, messageOf } from './open-question.ts';
import type { RunPolicy } from './run-policy.ts';

export interface Approvals {
  /** The approval policy: `auto-approve` until `begin` sets another policy. */
  readonly policy: ApprovalPolicy;
  /** Sets the policy, and a person's decision about a request that an earlier sandbox of the run made. */
  begin(policy: RunPolicy, earlierDecision: AgentTask['decision']): void;
  /** Sets the step of the conversation that later events about requests name. */
  startTurn(stepId: string): void;
  /** Stops waiting for answers about held actions. */
  endTurn(): void;
  /** Asks a person about an action that the service holds. Does nothing if no turn is in progress or the request is open. */
  askHeld(request: AgentRequest): void;
  /** State that the harness needs to continue its present action in another sandbox, for requests about held actions. */
  resume: string | undefined;
  /**
   * Returns a person's decision about this request of an earlier sandbox, so that the harness can continue the tool call. Only the first
   * call returns the decision. Returns `undecided` if the person only continued the run, and undefined if the decision is about another
   * request.
   */
  takeUp(requestId: string): Promise<Verdict | 'undecided' | undefined>;
  /**
   * Decides about the request by the policy, or asks a person and waits for the answer. Several requests are decided one after another.
   * Rejects when `signal` aborts.
   */
  ask(request: ApprovalRequest, signal: AbortSignal): Promise<Verdict>;
  /** Returns true if the follow-up answers the open request. */
  isAwaited(followUp: FollowUp): boolean;
  /** Uses a follow-up as the answer to the open request. Returns false if the message of the follow-up must also run as a turn. */
  answer(followUp: FollowUp): boolean;
  /** Called when the service has refused to ask a person: the open request fails. */
  refused(requestId: string, reason: string): void;
  /**
   * Returns the text that a follow-up gives to the harness in a turn. If the follow-up decides about a request that is not open any more,
   * the text describes the decision.
   */
  turnMessage(followUp: FollowUp): string;
}

/** A person's decision about a request that an earlier sandbox of the run made. */
interface EarlierDecision {
  readonly asked: AskedRequest;
  /** Undefined if the person only continued the run. */
  readonly verdict: Verdict | undefined;
  readonly followUpId: string;
}

/** Reads the decision of a run's task. */
function readEarlierDecision(earlier: NonNullable<AgentTask['decision']>): EarlierDecision {
  const { request: forPerson, decision, message, follow_up_id: followUpId } = earlier;
  const { request_id: id, kind, title, action } = forPerson;
  const request: ApprovalRequest = { kind, title, ...(action ? { action: { ...action, id: action.id ?? '' } } : {}) };
  const asked: AskedRequest = { id, request, forPerson, settledBy: followUpId };
  if (decision === undefined && message === undefined) return { asked, verdict: undefined, followUpId };
  const meaning = decision ?? (kind === 'question' ? 'answer' : 'deny');
  const verdict: Verdict = { decision: meaning, by: 'person', ...(message === undefined ? {} : { message }) };
  return { asked, verdict, followUpId };
}

/** Creates the approvals of a run. Only this code decides by the policy whether the agent may run an action, or asks a person about it. */
export function createApprovals(options: ApprovalsOptions): Approvals {
  let stepId = '';
  let resume: string | undefined;
  let turn: AbortController | undefined;
  /** Ids of held actions about which the agent asks. */
  const held = new Set<string>();
  let ofTask: AgentTask['decision'];
  /** The decision of the task, until a harness takes it. */
  let untaken: EarlierDecision | undefined;
  const decider = makeDecider(options, () => stepId);
  const { ask, asked, granted, question } = decider;

  return {
    get policy() {
      return decider.policy;
    },
    get resume() {
      return resume;
    },
    set resume(state) {
      resume = state;
    },
    begin(chosen, decision) {
      decider.setPolicy(chosen);
      ofTask = decision;
      const approved = decision?.decision === 'approve' ? decision.request.action?.fingerprint : undefined;
      if (decision !== undefined && approved !== undefined) granted.set(approved, decision.follow_up_id);
    },
    startTurn(id) {
      stepId = id;
      turn = new AbortController();
      if (ofTask === undefined) return;
      untaken = readEarlierDecision(ofTask);
      ofTask = undefined;
      const { asked: request, verdict, followUpId } = untaken;
      asked.set(request.id, request);
      if (verdict !== undefined) decider.emitDecided(request.id, request.request, verdict, followUpId);
    },
    async takeUp(requestId) {
      if (untaken?.asked.id !== requestId) return undefined;
      const { asked: request, verdict } = untaken;
      untaken = undefined;
      decider.takeGranted(request.forPerson.action?.fingerprint);
      await options.flush();
      return verdict ?? 'undecided';
    },
    ask,
    endTurn() {
      turn?.abort(new Error('the turn is over'));
      turn = undefined;
    },
    askHeld({ request_id: id, action, ...request }) {
      if (turn === undefined || held.has(id)) return;
      held.add(id);
      const more = { ...(action ? { action: { ...action, id } } : {}), ...(resume === undefined ? {} : { resume }) };
      // A rejection says that the turn ended, or that the service could not ask: the gateway then refuses the action.
      void ask({ ...request, ...more, held: id, messageIsTurn: true }, turn.signal)
        .catch(() => {})
        .finally(() => held.delete(id));
    },
    isAwaited: question.isAwaited,
    answer: question.answer,
    refused: question.refused,
    turnMessage(followUp) {
      const request = followUp.answers === undefined ? undefined : asked.get(followUp.answers);
      if (request === undefined || request.settledBy === followUp.id) return followUp.message;
      const { forPerson } = request;
      if (followUp.decision === 'approve' && forPerson.action?.fingerprint !== undefined)
        granted.set(forPerson.action.fingerprint, followUp.id);
      return decisionText(forPerson, { decision: followUp.decision, message: messageOf(followUp) });
    },
  };
}
