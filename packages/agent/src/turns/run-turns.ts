import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { FinishTask } from '@runyard/contract/agent/finish-task';
import type { HarnessOutcome } from '../acp/outcome.ts';
import { policyOfTask } from '../approvals/run-policy.ts';
import { ServiceRefusal } from '../service/errors.ts';
import type { FollowUp } from '../service/inbox.ts';
import { SetupFailure } from '../setup-failure.ts';
import { stopped } from '../stopping.ts';
import { finishTurn } from './finish-turn.ts';
import { runFirstTurn, runFreshCheckTurn } from './first-turn.ts';
import { followUpFiles } from './follow-up-files.ts';
import { runFollowUpTurn } from './follow-up-turn.ts';
import { followUpQueue, receiveInbox } from './inbox-messages.ts';
import { beginDecidedTurn, settleTurn } from './settle-turn.ts';
import { turnRunner } from './turn-runner.ts';
import type { TurnsOptions } from './turns-options.ts';

/**
 * Runs the turns of an execution one after another: first the prompt of the run, then each follow-up, until the service says that no
 * more follow-ups come. Rejects when the run is stopped, and if the agent itself has a fault.
 */
export async function runTurns(options: TurnsOptions): Promise<void> {
  const { client, workspace, position, stop, reporter, approvals, saver } = options;
  const runner = turnRunner(options);
  const followUps = followUpQueue();
  const files = followUpFiles(async (attachments) => {
    const { writeAttachments } = await import('../workspace/attachments.ts');
    return await writeAttachments(attachments, { client, workspace, signal: stop.signal });
  });
  /** The reason why the setup of this sandbox failed; undefined if the setup did not fail. */
  let setupFailure: string | undefined;

  async function firstTurn(task: AgentTask): Promise<HarnessOutcome> {
    options.treeOf(task);
    approvals.begin(policyOfTask(task, workspace), undefined);
    receiveInbox({ turns: options, runner, followUps, files });
    await beginDecidedTurn(task, { turns: options });
    const run = task.fresh_check === undefined ? runFirstTurn : runFreshCheckTurn;
    return await settleTurn(task, await run(task, options, runner), { turns: options, runner });
  }

  async function followUpTurn(task: AgentTask, followUp: FollowUp): Promise<HarnessOutcome> {
    await beginDecidedTurn(task, { turns: options });
    const parts = { turns: options, runner };
    const outcome = await runFollowUpTurn(task, followUp, { ...parts, files, setupFailure });
    // A turn in the sandbox of a failed setup is only about the failure.
    return setupFailure === undefined ? await settleTurn(task, outcome, parts) : outcome;
  }

  /**
   * Returns true if the agent may handle the follow-up in this sandbox. After a failed setup, it handles only messages about the
   * failure. Other messages wait for a sandbox whose setup succeeds.
   */
  const belongsHere = (followUp: FollowUp) => setupFailure === undefined || followUp.debug === true;

  /** Returns the outcome of a failure before or between turns. Throws if the run was stopped or the agent itself failed. */
  function outcomeOfError(error: unknown): HarnessOutcome {
    if (stop.signal.aborted) throw error;
    if (error instanceof SetupFailure) {
      setupFailure ??= error.message;
      return { kind: 'failed', code: error.code, summary: '', message: error.message };
    }
    if (error instanceof ServiceRefusal)
      return { kind: 'failed', code: 'agent_process_failed', summary: '', message: error.message };
    throw error;
  }

  async function leave(): Promise<void> {
    await saver.save(position.turn);
    await reporter.flush();
  }

  const resolved = Promise.race([options.task, stopped(stop.signal)]);
  let outcome = await resolved.then(firstTurn).catch(outcomeOfError);
  for (;;) {
    stop.signal.throwIfAborted();
    await options.services.report();
    await options.sideReports();
    if ((await finishTurn(turnReport(outcome, position.turn), options)) === 'leave') return await leave();
    void saver.save(position.turn);
    const followUp = await Promise.race([followUps.next(belongsHere), stopped(stop.signal)]);
    if (followUp === undefined) return await leave();
    await saver.abort();
    position.turn += 1;
    outcome = await resolved.then((task) => followUpTurn(task, followUp)).catch(outcomeOfError);
  }
}

/** Returns the report that tells the service how a turn ended. */
function turnReport(outcome: HarnessOutcome, turn: number): FinishTask & { turn: number } {
  switch (outcome.kind) {
    case 'succeeded':
      return {
        turn,
        success: true,
        summary: outcome.summary,
        ...(outcome.checks === undefined ? {} : { checks: outcome.checks }),
      };
    case 'interrupted':
      return { turn, success: true, interrupted: true, summary: outcome.summary };
    case 'failed':
      return {
        turn,
        success: false,
        summary: outcome.summary || outcome.message,
        error: {
          message: outcome.message,
          ...(outcome.code === undefined ? {} : { code: outcome.code }),
          ...(outcome.retried ? { retried: true } : {}),
        },
      };
    case 'cancelled':
      return {
        turn,
        success: false,
        summary: 'cancelled',
        error: { message: 'The agent was stopped before it had finished.' },
      };
  }
}
