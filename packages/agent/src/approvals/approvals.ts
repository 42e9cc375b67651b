/** The one place that decides whether the agent may do something, or asks a person. */

import type { AgentEventBody, AgentTask } from '@runyard/contract/agent-protocol';
import type { AgentRequest, ApprovalPolicy, Decision } from '@runyard/contract/approvals';
import { maxResumeLength } from '@runyard/contract/limits';
import { shorten } from '@runyard/contract/shorten';
import { actionId } from '../acp/action-id.ts';
import { boundedData } from '../acp/tool-output.ts';
import { newId } from '../new-id.ts';
import type { FollowUp } from '../service/inbox.ts';
import { decisionText } from './decision-text.ts';
import { fingerprint } from './fingerprint.ts';

/** Something to decide. The input is the whole one: what a person is shown of it is cut here. */
export interface Asked extends Pick<AgentRequest, 'kind' | 'title' | 'options' | 'resume'> {
  readonly action?: { readonly id: string } & Pick<NonNullable<AgentRequest['action']>, 'name' | 'category' | 'input'>;
  /** True: this harness cannot be told words. Without a decision they deny; those that deny are then played as the next turn. */
  readonly wordsAreTurn?: boolean;
  /** Awaited before a person is asked, with the id of the request: keeps what it takes to go on in another sandbox. */
  readonly beforeAsked?: (requestId: string) => Promise<void>;
}

/** `answer`: words without a decision. */
export interface Verdict {
  readonly decision: Decision | 'answer';
  readonly by: 'person' | 'policy';
  readonly message?: string;
}

export interface ApprovalsOptions {
  emit: (event: AgentEventBody) => void;
  /** Resolves when all that was emitted is acknowledged: an approval is used up before it is used. */
  flush: () => Promise<void>;
  /** A person has been asked: it may take long. */
  onWait?: () => void;
  /** The wait is over; awaited before the agent goes on. */
  onGo?: () => Promise<void>;
}

export interface Approvals {
  /** `auto-approve` until `begin`. */
  readonly policy: ApprovalPolicy;
  /** `earlier`: what was decided about a request of an earlier sandbox. */
  begin(policy: ApprovalPolicy | undefined, earlier: AgentTask['decision']): void;
  /** The step of the conversation that requests belong to from now on. */
  startTurn(stepId: string): void;
  /**
   * What was decided about this request of an earlier sandbox, for a harness that goes on with the very call that asked:
   * to be used at once, and once. `undecided`: it was only told to go on; undefined: that was another request.
   */
  takeUp(requestId: string): Promise<Verdict | 'undecided' | undefined>;
  /**
   * Decides by policy, or asks and waits; one request at a time. Rejects with the reason of `signal`: a cancel, the end
   * of the wait.
   */
  ask(asked: Asked, signal: AbortSignal): Promise<Verdict>;
  /** True where the follow-up answers the open request. */
  isAwaited(followUp: FollowUp): boolean;
  /** A follow-up came. True: it answered the open request and is no turn of its own. */
  answer(followUp: FollowUp): boolean;
  /** The service refused to put the request to a person, for this reason: nobody will answer it. */
  refused(requestId: string, reason: string): void;
  /** What a follow-up says as a turn: its message, or in words what it decides about a request that is not open any more. */
  turnMessage(followUp: FollowUp): string;
}

interface Request {
  readonly id: string;
  readonly asked: Asked;
  readonly shown: AgentRequest;
  /** The follow-up that settled it. */
  settledBy?: string;
}

const longestTitle = 2_000;
const longestInput = 16 * 1024;

/** What the agent tells of a request. */
function toShow(id: string, { kind, title, options, action, resume }: Asked): AgentRequest {
  return {
    request_id: id,
    kind,
    title: shorten(title, longestTitle),
    ...(options ? { options: options.slice(0, 20).map((option) => shorten(option, 500)) } : {}),
    ...(action
      ? {
          action: {
            id: actionId(action.id),
            name: shorten(action.name, 200),
            category: action.category,
            input: boundedData(action.input, longestInput),
            fingerprint: fingerprint(action),
          },
        }
      : {}),
    ...(resume === undefined || resume.length > maxResumeLength ? {} : { resume }),
  };
}

export function createApprovals(options: ApprovalsOptions): Approvals {
  const { emit, flush } = options;
  let policy: ApprovalPolicy = 'auto-approve';
  let earlier: AgentTask['decision'];
  /** What was decided in `earlier`, until it is taken up. */
  let carried: { requestId: string; fingerprint: string | undefined; verdict: Verdict | 'undecided' } | undefined;
  const requests = new Map<string, Request>();
  const granted = new Map<string, string>();
  let open: { request: Request; settle: (verdict: Verdict) => void; fail: (reason: Error) => void } | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let stepId = '';

  function decided(request: Pick<Request, 'id' | 'asked'>, verdict: Verdict, followUpId?: string): void {
    const { kind, title, action } = request.asked;
    emit({
      type: 'decided',
      step_id: stepId,
      request_id: request.id,
      kind,
      title: shorten(title, longestTitle),
      ...(action ? { action_id: actionId(action.id) } : {}),
      decision: verdict.decision,
      by: verdict.by,
      ...(followUpId === undefined ? {} : { follow_up_id: followUpId }),
      ...(verdict.message === undefined ? {} : { message: verdict.message }),
    });
  }

  /** Undefined: a person has to be asked. */
  function byPolicy(asked: Asked): Verdict | undefined {
    if (policy === 'auto-deny') return { decision: 'deny', by: 'policy' };
    if (policy === 'auto-approve' && asked.kind === 'permission') return { decision: 'approve', by: 'policy' };
    return undefined;
  }

  async function decide(asked: Asked, signal: AbortSignal): Promise<Verdict> {
    signal.throwIfAborted();
    const id = newId();
    const verdict = byPolicy(asked);
    if (verdict !== undefined) {
      decided({ id, asked }, verdict);
      return verdict;
    }
    const shown = toShow(id, asked);
    const approvedBy = granted.get(shown.action?.fingerprint ?? '');
    if (approvedBy !== undefined && shown.action?.fingerprint !== undefined) {
      granted.delete(shown.action.fingerprint);
      const approved: Verdict = { decision: 'approve', by: 'person' };
      decided({ id, asked }, approved, approvedBy);
      // As an approval that has just come: on record before it is used.
      await flush();
      return approved;
    }
    await asked.beforeAsked?.(id);
    signal.throwIfAborted();
    const request: Request = { id, asked, shown };
    requests.set(id, request);
    const { promise, resolve, reject } = Promise.withResolvers<Verdict>();
    open = { request, settle: resolve, fail: reject };
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    emit({ type: 'blocked', step_id: stepId, request: shown });
    options.onWait?.();
    try {
      const answered = await promise;
      await flush();
      signal.throwIfAborted();
      return answered;
    } finally {
      signal.removeEventListener('abort', onAbort);
      if (open?.request === request) open = undefined;
      await options.onGo?.();
    }
  }

  return {
    get policy() {
      return policy;
    },
    begin(chosen, decided) {
      policy = chosen ?? 'auto-approve';
      earlier = decided;
      const approved = decided?.decision === 'approve' ? decided.request.action?.fingerprint : undefined;
      if (decided !== undefined && approved !== undefined) granted.set(approved, decided.follow_up_id);
    },
    startTurn(id) {
      stepId = id;
      if (earlier === undefined) return;
      const { request, decision, message, follow_up_id } = earlier;
      earlier = undefined;
      const { request_id: requestId, kind, title, action } = request;
      const asked: Asked = { kind, title, ...(action ? { action: { ...action, id: action.id ?? '' } } : {}) };
      requests.set(requestId, { id: requestId, asked, shown: request, settledBy: follow_up_id });
      const meant = decision ?? (kind === 'question' ? 'answer' : 'deny');
      const isUndecided = decision === undefined && message === undefined;
      const verdict: Verdict = { decision: meant, by: 'person', ...(message === undefined ? {} : { message }) };
      carried = { requestId, fingerprint: action?.fingerprint, verdict: isUndecided ? 'undecided' : verdict };
      if (!isUndecided) decided({ id: requestId, asked }, verdict, follow_up_id);
    },
    async takeUp(requestId) {
      if (carried?.requestId !== requestId) return undefined;
      const { fingerprint, verdict } = carried;
      carried = undefined;
      if (fingerprint !== undefined) granted.delete(fingerprint);
      await flush();
      return verdict;
    },
    ask(asked, signal) {
      const mine = last.then(() => decide(asked, signal));
      last = mine.catch(() => {});
      return mine;
    },
    isAwaited: (followUp) => open !== undefined && followUp.answers === open.request.id,
    answer(followUp) {
      if (open === undefined || followUp.answers !== open.request.id) return false;
      const { request, settle } = open;
      open = undefined;
      request.settledBy = followUp.id;
      const message = followUp.message.trim() === '' ? undefined : followUp.message;
      const { wordsAreTurn } = request.asked;
      const decision = followUp.decision ?? (wordsAreTurn ? 'deny' : 'answer');
      // An approval is used up at once: told again after a crash, it could be acted on twice.
      const hasWords = message !== undefined || followUp.decision === undefined;
      const isTurn = wordsAreTurn === true && decision === 'deny' && hasWords;
      const verdict: Verdict = { decision, by: 'person', ...(message === undefined ? {} : { message }) };
      if (!isTurn) emit({ type: 'follow_up_taken', follow_up_id: followUp.id });
      decided(request, verdict, followUp.id);
      settle(verdict);
      return !isTurn;
    },
    refused(requestId, reason) {
      if (open?.request.id !== requestId) return;
      const { fail } = open;
      open = undefined;
      fail(new Error(`The question could not be put to a person: ${reason}`));
    },
    turnMessage(followUp) {
      const request = followUp.answers === undefined ? undefined : requests.get(followUp.answers);
      if (request === undefined || request.settledBy === followUp.id) return followUp.message;
      const { shown } = request;
      if (followUp.decision === 'approve' && shown.action?.fingerprint !== undefined)
        granted.set(shown.action.fingerprint, followUp.id);
      const message = followUp.message.trim() === '' ? undefined : followUp.message;
      return decisionText(shown, { decision: followUp.decision, message });
    },
  };
}
