import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import type { ApprovalPolicy } from '@runyard/contract/runs/approvals';
import { actionId } from '../acp/action-id.ts';
import { newId } from '../new-id.ts';
import { type ApprovalRequest, requestForPerson, requestTitle, unshowable, type Verdict } from './approval-request.ts';
import { type AskedRequest, openQuestion } from './open-question.ts';
import { decideByPolicy, keyOf, type RunPolicy, withRestOfRun } from './run-policy.ts';

/** Connections of the approvals to the rest of the run. */
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

const approvedByPerson: Verdict = { decision: 'approve', by: 'person' };

function decidedEvent(
  stepId: string,
  id: string,
  { kind, title, action }: ApprovalRequest,
  { decision, by, message }: Verdict,
  followUpId: string | undefined,
): AgentEventBody {
  return {
    type: 'decided',
    step_id: stepId,
    request_id: id,
    kind,
    title: requestTitle(title),
    ...(action ? { action_id: actionId(action.id) } : {}),
    decision,
    by,
    ...(followUpId === undefined ? {} : { follow_up_id: followUpId }),
    ...(message === undefined ? {} : { message }),
  };
}

/** Decides about requests one after another: by the policy, by an earlier approval of a person, or by asking a person. */
export function makeDecider({ emit, flush, onWait, onWaitEnd }: ApprovalsOptions, stepId: () => string) {
  let run: RunPolicy = { policy: undefined };
  /** Approvals for the rest of the run: words of rules, and fingerprints of actions. */
  const allowed = new Set<string>();
  /** Follow-ups that approved an action, by the fingerprint of the action. Each approval is valid only once. */
  const granted = new Map<string, string>();
  const asked = new Map<string, AskedRequest>();
  let last: Promise<unknown> = Promise.resolve();

  const emitDecided = (id: string, request: ApprovalRequest, verdict: Verdict, followUpId?: string): void =>
    emit(decidedEvent(stepId(), id, request, verdict, followUpId));
  const question = openQuestion({
    emit,
    stepId,
    emitDecided,
    onAllowed: (forPerson) => void allowed.add(keyOf(forPerson)),
  });

  /** Returns the verdict of the policy, or a denial if a person cannot see the whole request. Undefined: a person decides. */
  function decideWithoutPerson(request: ApprovalRequest): Verdict | undefined {
    const byPolicy = request.held === undefined ? decideByPolicy(run, request) : undefined;
    if (byPolicy !== undefined) return byPolicy;
    const reason = unshowable(request);
    return reason === undefined ? undefined : { decision: 'deny', by: 'policy', message: reason };
  }

  async function decide(asking: ApprovalRequest, signal: AbortSignal): Promise<Verdict> {
    signal.throwIfAborted();
    const id = asking.held ?? newId();
    const request = withRestOfRun(run, asking);
    const decided = decideWithoutPerson(request);
    if (decided !== undefined) {
      emitDecided(id, request, decided);
      return decided;
    }
    const forPerson = requestForPerson(id, request);
    if (allowed.has(keyOf(forPerson))) {
      emitDecided(id, request, approvedByPerson);
      return approvedByPerson;
    }
    const approvedBy = takeGranted(forPerson.action?.fingerprint);
    if (approvedBy !== undefined) {
      emitDecided(id, request, approvedByPerson, approvedBy);
      await flush();
      return approvedByPerson;
    }
    await request.beforeAsked?.(id);
    signal.throwIfAborted();
    return await askPerson({ id, request, forPerson }, signal);
  }

  /** Uses up an earlier approval of the action. Returns the id of the follow-up that approved it; undefined if there is none. */
  function takeGranted(fingerprint: string | undefined): string | undefined {
    const followUpId = fingerprint === undefined ? undefined : granted.get(fingerprint);
    if (fingerprint !== undefined) granted.delete(fingerprint);
    return followUpId;
  }

  async function askPerson(asking: AskedRequest, signal: AbortSignal): Promise<Verdict> {
    asked.set(asking.id, asking);
    const answered = question.ask(asking, signal);
    onWait?.();
    try {
      const verdict = await answered;
      await flush();
      signal.throwIfAborted();
      return verdict;
    } finally {
      await onWaitEnd?.();
    }
  }

  return {
    question,
    /** The requests that this sandbox and the earlier one asked a person about, by their ids. */
    asked,
    granted,
    takeGranted,
    emitDecided,
    get policy(): ApprovalPolicy {
      return run.policy ?? 'auto-approve';
    },
    setPolicy(chosen: RunPolicy): void {
      run = chosen;
      for (const request of chosen.allowed ?? []) allowed.add(keyOf(request));
    },
    ask(request: ApprovalRequest, signal: AbortSignal): Promise<Verdict> {
      const verdict = last.then(() => decide(request, signal));
      last = verdict.catch(() => {});
      return verdict;
    },
  };
}
