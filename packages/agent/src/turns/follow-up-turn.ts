import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { HarnessOutcome } from '../acp/outcome.ts';
import { debugText } from '../harness/prompt.ts';
import type { FollowUp } from '../service/inbox.ts';
import { SetupFailure } from '../setup-failure.ts';
import type { WrittenAttachment } from '../workspace/attachments.ts';
import type { FollowUpFiles } from './follow-up-files.ts';
import { runMessageTurn } from './message-turn.ts';
import type { TurnRunner } from './turn-runner.ts';
import type { TurnsOptions } from './turns-options.ts';

export interface FollowUpTurnOptions {
  readonly turns: Pick<TurnsOptions, 'position' | 'reporter' | 'record' | 'approvals' | 'harness' | 'treeOf'>;
  readonly runner: TurnRunner;
  readonly files: FollowUpFiles;
  /** The reason why the setup of this sandbox failed; undefined if the setup did not fail. */
  readonly setupFailure: string | undefined;
}

/** Runs the turn of a follow-up. Writes the files of the follow-up into the workspace before the turn. */
export async function runFollowUpTurn(
  task: AgentTask,
  followUp: FollowUp,
  { turns, runner, files, setupFailure }: FollowUpTurnOptions,
): Promise<HarnessOutcome> {
  const { reporter, approvals } = turns;
  reporter.emit({ type: 'follow_up_taken', follow_up_id: followUp.id });
  // The service withholds rights that the author of the follow-up lacks, but only after it knows that the text runs.
  await reporter.flush();
  // An answer continues the work of the turn that asked, so it has the mode of this turn.
  const mode = followUp.mode ?? (followUp.answers === undefined ? undefined : turns.position.mode);
  turns.position.mode = mode;
  turns.treeOf(task).orchestrate(mode);
  let attachments: readonly WrittenAttachment[];
  try {
    attachments = await files.written(followUp);
    files.forget(followUp);
  } catch (error) {
    // Fail only this turn, because the setup of the sandbox was successful.
    if (error instanceof SetupFailure) return { kind: 'failed', summary: '', message: error.message };
    throw error;
  }
  const message = approvals.turnMessage(followUp);
  const request = setupFailure === undefined ? message : debugText(task, setupFailure, message);
  const { decision: _, ...undecided } = task;
  const ofTurn = setupFailure === undefined ? task : undecided;
  return await runMessageTurn(ofTurn, { message, request, mode, attachments }, { turns, runner });
}
