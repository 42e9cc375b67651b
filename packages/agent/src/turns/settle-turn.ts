import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { HarnessOutcome } from '../acp/outcome.ts';
import { checkReminder } from '../checks/prompt-text.ts';
import { harnessProfile } from '../harness/profile.ts';
import { resultReminder } from '../results/prompt-text.ts';
import { runMessageTurn } from './message-turn.ts';
import type { TurnRunner } from './turn-runner.ts';
import type { TurnsOptions } from './turns-options.ts';

export interface SettleParts {
  readonly turns: Pick<TurnsOptions, 'harness' | 'record' | 'openResult' | 'openChecks' | 'position' | 'stop'>;
  readonly runner: TurnRunner;
}

/** The reason why a turn has not succeeded yet. */
interface Problem {
  readonly code: 'result_invalid' | 'checks_failed';
  readonly message: string;
  /** The message that sends the agent back to its work. */
  readonly reminder: string;
  readonly mayTryAgain: boolean;
}

/** Forgets the result and the rounds of checks of earlier turns. */
export async function beginDecidedTurn(task: AgentTask, { turns }: Pick<SettleParts, 'turns'>): Promise<void> {
  await (await turns.openResult(task))?.beginTurn();
  (await turns.openChecks(task))?.beginTurn();
}

/**
 * Decides whether a turn that the harness calls a success is one: the run may have to return a result, and it may have checks. If
 * something is missing, gives the harness a message about it and lets it continue within the same turn. Returns the outcome of the turn. A
 * turn with the mode plan, and a turn that failed or was interrupted, are not changed.
 */
export async function settleTurn(
  task: AgentTask,
  outcome: HarnessOutcome,
  parts: SettleParts,
): Promise<HarnessOutcome> {
  const { position, stop } = parts.turns;
  const { readsAdvice } = harnessProfile(task).capabilities;
  let last = outcome;
  for (;;) {
    stop.signal.throwIfAborted();
    if (last.kind !== 'succeeded' || position.mode === 'plan') return last;
    const decided = await decide(task, last, parts);
    if (!('reminder' in decided)) return decided;
    const { code, message, reminder, mayTryAgain } = decided;
    if (!mayTryAgain || !readsAdvice) return { kind: 'failed', code, summary: last.summary, message };
    last = await runMessageTurn(task, { message: reminder, mode: position.mode }, parts);
  }
}

type Succeeded = Extract<HarnessOutcome, { kind: 'succeeded' }>;

/** Returns the problem of a turn, or its outcome if there is none or a person has interrupted the checks. */
async function decide(
  task: AgentTask,
  { summary }: Succeeded,
  { turns, runner }: SettleParts,
): Promise<Problem | HarnessOutcome> {
  const state = await (await turns.openResult(task))?.endTurn();
  if (state?.kind === 'missing') {
    const { problem, mayTryAgain } = state;
    return { code: 'result_invalid', message: problem, reminder: resultReminder(problem), mayTryAgain };
  }
  const checks = await turns.openChecks(task);
  if (checks === undefined) return { kind: 'succeeded', summary };
  const { interrupted } = runner;
  try {
    const { outcomes, failure, mayTryAgain } = await checks.run(AbortSignal.any([turns.stop.signal, interrupted]));
    if (failure === undefined) return { kind: 'succeeded', summary, checks: outcomes };
    return { code: 'checks_failed', message: failure, reminder: checkReminder(failure), mayTryAgain };
  } catch (error) {
    if (interrupted.aborted && !turns.stop.signal.aborted) return { kind: 'interrupted', summary };
    throw error;
  }
}
