import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import type { ApprovalRule } from '@runyard/contract/runs/approval-rules';
import type { AgentRequest, ApprovalPolicy } from '@runyard/contract/runs/approvals';
import { policyOfHarness } from '@runyard/contract/runs/compare-approvals';
import { actionId } from '../acp/action-id.ts';
import { newId } from '../new-id.ts';
import type { FollowUp } from '../service/inbox.ts';
import { type ApprovalRequest, requestForPerson, requestTitle, unshowable, type Verdict } from './approval-request.ts';
import { decisionText } from './decision-text.ts';
import { matchingRule } from './matching-rule.ts';

export interface ApprovalsOptions {
  emit: (event: AgentEventBody) => void;
  /**
   * Resolves when the service has stored all events that were emitted so far. The agent runs an approved action only after that, so
   * the service always knows that the approval was used.
   */
  flush: () => Promise<void>;
  /** Called after the agent has asked a person. The person may take long to answer. */
  onWait?: () => void;
  /** Called when the wait has ended. The agent continues when the returned promise has resolved. */
  onWaitEnd?: () => Promise<void>;
}

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

/** Decides without a person. */
export interface RunPolicy extends Pick<AgentTask, 'allowed'> {
  readonly policy: ApprovalPolicy | undefined;
  /** Limits the policy to actions that match. */
  readonly rules?: readonly ApprovalRule[] | undefined;
  readonly workspace?: string;
}

/** Returns the policy of a run's task for the actions that the harness asks about. */
export const policyOfTask = ({ agent_config: config, allowed }: AgentTask, workspace: string): RunPolicy => ({
  policy: policyOfHarness(config),
  rules: config.approval_rules,
  workspace,
  ...(allowed ? { allowed } : {}),
});

/** Words for an approval for the rest of the run, if no rule matched: only the same name and input are allowed again. */
const sameAction = 'exactly this action again';

interface AskedRequest {
  readonly id: string;
  readonly request: ApprovalRequest;
  readonly forPerson: AgentRequest;
  /** Id of the follow-up that settled the request. */
  settledBy?: string;
}

/** Returns the key under which an approval for the rest of the run is remembered. */
const keyOf = ({ rest_of_run: words, action }: AgentRequest): string =>
  words === undefined || words === sameAction ? (action?.fingerprint ?? '') : words;

/** Creates the approvals of a run. Only this code decides by the policy whether the agent may run an action, or asks a person about it. */
export function createApprovals(options: ApprovalsOptions): Approvals {
  const { emit, flush } = options;
  let policy: ApprovalPolicy = 'auto-approve';
  let rules: RunPolicy['rules'];
  let workspace = '/';
  let resume: string | undefined;
  let turn: AbortController | undefined;
  /** Ids of held actions about which the agent asks. */
  const held = new Set<string>();
  /** Approvals for the rest of the run: words of rules, and fingerprints of actions. */
  const allowed = new Set<string>();
  let earlierDecision: AgentTask['decision'];
  /** The verdict of `earlierDecision`, until a harness takes it. */
  let untaken: { requestId: string; fingerprint: string | undefined; verdict: Verdict | 'undecided' } | undefined;
  const asked = new Map<string, AskedRequest>();
  /** Follow-ups that approved an action, by the fingerprint of the action. */
  const granted = new Map<string, string>();
  let open: { asked: AskedRequest; settle: (verdict: Verdict) => void; fail: (reason: Error) => void } | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let stepId = '';

  function emitDecided(id: string, request: ApprovalRequest, verdict: Verdict, followUpId?: string): void {
    const { kind, title, action } = request;
    emit({
      type: 'decided',
      step_id: stepId,
      request_id: id,
      kind,
      title: requestTitle(title),
      ...(action ? { action_id: actionId(action.id) } : {}),
      decision: verdict.decision,
      by: verdict.by,
      ...(followUpId === undefined ? {} : { follow_up_id: followUpId }),
      ...(verdict.message === undefined ? {} : { message: verdict.message }),
    });
  }

  /** Returns the verdict of the policy; undefined if a person has to be asked. */
  function decideByPolicy(request: ApprovalRequest): Verdict | undefined {
    const { kind } = request;
    if (kind === 'permission' && rules && matchingRule(rules, request, workspace) === undefined)
      return { decision: 'approve', by: 'policy' };
    if (policy === 'auto-deny') return { decision: 'deny', by: 'policy' };
    if (policy === 'auto-approve' && kind === 'permission') return { decision: 'approve', by: 'policy' };
    return undefined;
  }

  /**
   * Uses up an earlier approval of this action, because an approval is valid only once. Returns the id of the follow-up that approved the
   * action. Returns undefined if there is no approval.
   */
  function takeGranted(fingerprint: string | undefined): string | undefined {
    const followUpId = fingerprint === undefined ? undefined : granted.get(fingerprint);
    if (fingerprint !== undefined) granted.delete(fingerprint);
    return followUpId;
  }

  /** Adds to a permission request the actions that an approval for the rest of the run allows. */
  function withRestOfRun(request: ApprovalRequest): ApprovalRequest {
    if (request.kind !== 'permission' || request.held !== undefined) return request;
    const matched = rules && matchingRule(rules, request, workspace);
    const words = rules === undefined && request.action !== undefined ? sameAction : matched;
    return words === undefined ? request : { ...request, rest_of_run: words };
  }

  async function decide(asking: ApprovalRequest, signal: AbortSignal): Promise<Verdict> {
    signal.throwIfAborted();
    const id = asking.held ?? newId();
    const request = withRestOfRun(asking);
    const byPolicy = request.held === undefined ? decideByPolicy(request) : undefined;
    if (byPolicy !== undefined) {
      emitDecided(id, request, byPolicy);
      return byPolicy;
    }
    const reason = unshowable(request);
    if (reason !== undefined) {
      const refused: Verdict = { decision: 'deny', by: 'policy', message: reason };
      emitDecided(id, request, refused);
      return refused;
    }
    const forPerson = requestForPerson(id, request);
    if (allowed.has(keyOf(forPerson))) {
      const approved: Verdict = { decision: 'approve', by: 'person' };
      emitDecided(id, request, approved);
      return approved;
    }
    const approvedBy = takeGranted(forPerson.action?.fingerprint);
    if (approvedBy !== undefined) {
      const approved: Verdict = { decision: 'approve', by: 'person' };
      emitDecided(id, request, approved, approvedBy);
      await flush();
      return approved;
    }
    await request.beforeAsked?.(id);
    signal.throwIfAborted();
    return await askPerson({ id, request, forPerson }, signal);
  }

  async function askPerson(question: AskedRequest, signal: AbortSignal): Promise<Verdict> {
    asked.set(question.id, question);
    const { promise, resolve, reject } = Promise.withResolvers<Verdict>();
    open = { asked: question, settle: resolve, fail: reject };
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    emit({ type: 'blocked', step_id: stepId, request: question.forPerson });
    options.onWait?.();
    try {
      const verdict = await promise;
      await flush();
      signal.throwIfAborted();
      return verdict;
    } finally {
      signal.removeEventListener('abort', onAbort);
      if (open?.asked === question) open = undefined;
      await options.onWaitEnd?.();
    }
  }

  const ask: Approvals['ask'] = (request, signal) => {
    const verdict = last.then(() => decide(request, signal));
    last = verdict.catch(() => {});
    return verdict;
  };

  return {
    get policy() {
      return policy;
    },
    get resume() {
      return resume;
    },
    set resume(state) {
      resume = state;
    },
    begin(chosen, decision) {
      policy = chosen.policy ?? 'auto-approve';
      ({ rules, workspace = '/' } = chosen);
      for (const request of chosen.allowed ?? []) allowed.add(keyOf(request));
      earlierDecision = decision;
      const approved = decision?.decision === 'approve' ? decision.request.action?.fingerprint : undefined;
      if (decision !== undefined && approved !== undefined) granted.set(approved, decision.follow_up_id);
    },
    startTurn(id) {
      stepId = id;
      turn = new AbortController();
      if (earlierDecision === undefined) return;
      const { request: forPerson, decision, message, follow_up_id } = earlierDecision;
      earlierDecision = undefined;
      const { request_id: requestId, kind, title, action } = forPerson;
      const request: ApprovalRequest = {
        kind,
        title,
        ...(action ? { action: { ...action, id: action.id ?? '' } } : {}),
      };
      asked.set(requestId, { id: requestId, request, forPerson, settledBy: follow_up_id });
      const meaning = decision ?? (kind === 'question' ? 'answer' : 'deny');
      const isUndecided = decision === undefined && message === undefined;
      const verdict: Verdict = { decision: meaning, by: 'person', ...(message === undefined ? {} : { message }) };
      untaken = { requestId, fingerprint: action?.fingerprint, verdict: isUndecided ? 'undecided' : verdict };
      if (!isUndecided) emitDecided(requestId, request, verdict, follow_up_id);
    },
    async takeUp(requestId) {
      if (untaken?.requestId !== requestId) return undefined;
      const { fingerprint, verdict } = untaken;
      untaken = undefined;
      if (fingerprint !== undefined) granted.delete(fingerprint);
      await flush();
      return verdict;
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
    isAwaited: (followUp) => open !== undefined && followUp.answers === open.asked.id,
    answer(followUp) {
      if (open === undefined || followUp.answers !== open.asked.id) return false;
      const { asked: question, settle } = open;
      open = undefined;
      const { id, request, forPerson } = question;
      if (followUp.decision === 'approve' && followUp.allow_for === 'run') allowed.add(keyOf(forPerson));
      if (followUp.late) {
        settle({ decision: 'approve', by: 'person' });
        return false;
      }
      question.settledBy = followUp.id;
      const message = followUp.message.trim() === '' ? undefined : followUp.message;
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
    refused(requestId, reason) {
      if (open?.asked.id !== requestId) return;
      const { fail } = open;
      open = undefined;
      fail(new Error(`The question could not be put to a person: ${reason}`));
    },
    turnMessage(followUp) {
      const question = followUp.answers === undefined ? undefined : asked.get(followUp.answers);
      if (question === undefined || question.settledBy === followUp.id) return followUp.message;
      const { forPerson } = question;
      if (followUp.decision === 'approve' && forPerson.action?.fingerprint !== undefined)
        granted.set(forPerson.action.fingerprint, followUp.id);
      const message = followUp.message.trim() === '' ? undefined : followUp.message;
      return decisionText(forPerson, { decision: followUp.decision, message });
    },
  };
}
