/** Decides how a follow-up takes effect, from the facts about its run. Reads and writes nothing: `accept.ts` does both. */

import { maxWaitingFollowups } from '@runyard/contract/limits';
import type { FollowupRouting, RunFollowupRequest } from '@runyard/contract/runs/run-request';
import type { RunState } from '@runyard/contract/runs/states';
import type { OpenRequest } from '../../executions/idle/debug-window.ts';
import type { Phase } from '../../executions/phases.ts';

/** The facts about a run when a follow-up arrives. They are read while the rows of the run and of its current execution are locked. */
export interface FollowupSituation {
  readonly state: RunState;
  /** Phase of the run's current execution. */
  readonly phase: Phase;
  /** Open question of a BLOCKED run; null in every other state. */
  readonly openRequest: OpenRequest | null;
  /** Question that the agent asked in the sandbox of a failed setup. The question is open while that sandbox is idle. */
  readonly debugRequest: OpenRequest | null;
  /** True if the run has a saved conversation with at least one turn. */
  readonly hasConversation: boolean;
  /** True if the agent of an execution of the run has given the run's prompt to the harness. */
  readonly hasStarted: boolean;
  /** Number of follow-ups that no agent has taken yet. */
  readonly waiting: number;
}

/** The parts of a follow-up that the decision depends on. */
export interface FollowupContent
  extends Pick<RunFollowupRequest, 'decision' | 'allow_for' | 'request_id' | 'workspace'> {
  readonly hasMessage: boolean;
  readonly hasFiles: boolean;
}

/** Members of a follow-up that can be wrong for the state of the run. */
export type RefusedMember = 'decision' | 'allow_for' | 'request_id' | 'workspace';

/** How a follow-up reaches an agent. */
type FollowupWay =
  /** The agent takes the follow-up with its first prompt or as a later turn. */
  | { readonly kind: 'join' }
  /** The idle agent of a SUCCEEDED run continues with the follow-up. */
  | { readonly kind: 'resume' }
  /** The idle agent of a BLOCKED run continues with this answer. */
  | { readonly kind: 'answer' }
  /** The agent in the sandbox of a failed setup gets the follow-up; the run stays FAILED. `wakes`: that agent is idle. */
  | { readonly kind: 'debug'; readonly wakes: boolean }
  /** A new execution begins with the follow-up, and also with the run's own prompt if `withPrompt` is true. */
  | { readonly kind: 'continue'; readonly withPrompt: boolean };

/**
 * How a follow-up reaches an agent, or why it is refused. `question`: the question that it answers; null: there is none. `routing`: the
 * name of this way in the answer to the sender.
 */
export type FollowupDecision =
  | (FollowupWay & { readonly question: OpenRequest | null; readonly routing: FollowupRouting })
  /** 400: the run does not ask the question that the follow-up answers. */
  | { readonly kind: 'refuse'; readonly path: RefusedMember; readonly reason: string }
  /** 400: the follow-up is empty, and there is no conversation to continue. */
  | { readonly kind: 'refuse_empty' }
  /** 400: the maximum number of follow-ups already waits for the agent. */
  | { readonly kind: 'refuse_full' };

/** Decides how the follow-up takes effect. */
export function decideFollowup(situation: FollowupSituation, content: FollowupContent): FollowupDecision {
  const beginsAnew = content.workspace === 'changes';
  const question = beginsAnew ? null : openQuestionOf(situation);
  const refusal = refuseAnswer(situation.state, question, content);
  if (refusal) return refusal;
  const way = beginsAnew ? newExecutionOf(situation) : wayOf(situation);
  if (beginsAnew && wayOf(situation).kind === 'join') {
    const reason = `the run is ${situation.state}: send the message after its turn has ended, or cancel the run first`;
    return { kind: 'refuse', path: 'workspace', reason };
  }
  const canBeEmpty = way.kind === 'continue' && situation.hasConversation;
  const isEmpty = !content.hasMessage && !content.hasFiles && content.decision === undefined;
  if (isEmpty && !canBeEmpty) return { kind: 'refuse_empty' };
  // If a new execution begins, accept one more follow-up, because the execution takes all waiting follow-ups.
  if (way.kind !== 'continue' && situation.waiting >= maxWaitingFollowups) return { kind: 'refuse_full' };
  return { ...way, question, routing: routingOf(situation, way) };
}

/** Returns the question that the agent of the run asks now; null: no question. */
function openQuestionOf({ state, phase, openRequest, debugRequest }: FollowupSituation): OpenRequest | null {
  if (state === 'FAILED' && phase === 'idle') return debugRequest;
  return openRequest;
}

/** Returns the refusal if the follow-up is an answer but not to the present question; otherwise undefined. */
function refuseAnswer(
  state: RunState,
  question: OpenRequest | null,
  { decision, allow_for: allowFor, request_id }: FollowupContent,
): FollowupDecision | undefined {
  if (question === null) {
    const reason = `the run is ${state}${state === 'FAILED' ? '' : ', not BLOCKED,'} and has no open question`;
    if (decision !== undefined) return { kind: 'refuse', path: 'decision', reason };
    if (allowFor !== undefined) return { kind: 'refuse', path: 'allow_for', reason };
    return request_id === undefined ? undefined : { kind: 'refuse', path: 'request_id', reason };
  }
  if (allowFor === 'run' && (decision !== 'approve' || question.rest_of_run === undefined)) {
    const reason = 'run is for approvals of requests that have rest_of_run; leave it out, or approve once';
    return { kind: 'refuse', path: 'allow_for', reason };
  }
  if (request_id === undefined || request_id === question.request_id) return undefined;
  const reason = `is not open any more; the run asks ${question.request_id} now`;
  return { kind: 'refuse', path: 'request_id', reason };
}

/**
 * Returns how a follow-up reaches an agent, by the state of the run and the phase of its execution. The states are those of the table in
 * the contract.
 */
function wayOf(situation: FollowupSituation): FollowupWay {
  const { state, phase } = situation;
  const isIdle = phase === 'idle';
  const newExecution = newExecutionOf(situation);
  switch (state) {
    case 'QUEUED':
    case 'PENDING':
    case 'CLAIMED':
    case 'INPROGRESS':
      return { kind: 'join' };
    case 'SUCCEEDED':
      return isIdle ? { kind: 'resume' } : newExecution;
    case 'BLOCKED':
      return isIdle ? { kind: 'answer' } : newExecution;
    case 'FAILED':
      // A FAILED run whose execution is idle or running has the sandbox of a failed setup.
      return isIdle || phase === 'running' ? { kind: 'debug', wakes: isIdle } : newExecution;
    case 'ERROR':
    case 'CANCELLED':
      return newExecution;
  }
}

/**
 * Returns the way that begins a new execution. If the run has a conversation but has not started, the conversation took place in the sandbox
 * of a failed setup. The run's prompt was not executed then, so the new execution begins with it.
 */
const newExecutionOf = ({ hasConversation, hasStarted }: FollowupSituation): FollowupWay => ({
  kind: 'continue',
  withPrompt: !(hasConversation && hasStarted),
});

/** Returns the member `routing` of the answer to the sender: the name of the way in which the follow-up reaches an agent. */
function routingOf({ state, phase, hasStarted }: FollowupSituation, way: FollowupWay): FollowupRouting {
  switch (way.kind) {
    case 'resume':
    case 'answer':
    case 'debug':
      return 'live_session';
    case 'continue':
      return 'handoff_execution';
    case 'join':
      if (state === 'INPROGRESS') return phase === 'running' ? 'live_session' : 'queue_pending';
      // In two cases the follow-up may come too late for the first prompt: the agent of a CLAIMED run may already have the prompt, and a
      // run that has started has already executed it.
      return state !== 'CLAIMED' && !hasStarted ? 'queued_prompt' : 'queue_pending';
  }
}
