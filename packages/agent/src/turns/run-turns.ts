/** The turns of an execution, one after another: the run's prompt first, then each follow-up, as long as the service has one. */

import type { ContentBlock } from '@agentclientprotocol/sdk';
import type { AgentTask } from '@runyard/contract/agent-protocol';
import type { HarnessOutcome } from '../acp/outcome.ts';
import type { Approvals } from '../approvals/approvals.ts';
import type { ConversationRecord } from '../harness/conversation-record.ts';
import type { Driver, Turn } from '../harness/driver.ts';
import type { ExecutionHarness } from '../harness/execution-harness.ts';
import {
  debugText,
  fileLinks,
  firstMessage,
  promptAfterRestart,
  promptContent,
  promptText,
} from '../harness/prompt.ts';
import { harnessName, isBuiltin, modelId } from '../harness/start-harness.ts';
import { newId } from '../new-id.ts';
import type { Reporter } from '../reporting/reporter.ts';
import { setupSteps } from '../reporting/setup-steps.ts';
import type { runTree } from '../run-tree/tree.ts';
import type { ServiceClient } from '../service/client.ts';
import { ServiceRefusal } from '../service/errors.ts';
import { type FollowUp, watchInbox } from '../service/inbox.ts';
import { SetupFailure } from '../setup-failure.ts';
import { type Stopping, stopped } from '../stopping.ts';
import type { WrittenAttachment } from '../workspace/attachments.ts';
import { prepareWorkspace, setupCommands } from '../workspace/prepare.ts';
import type { DeferredSaver } from '../workspace-archive/deferred-saver.ts';
import { followUpFiles } from './follow-up-files.ts';
import { followUpQueue } from './follow-up-queue.ts';
import { turnReport } from './turn-report.ts';

/** Where the execution is. */
export interface Place {
  /** 1, 2, … in this execution. */
  turn: number;
  /** Of the last turn that began; empty: none did. */
  stepId: string;
}

export interface TurnsOptions {
  client: ServiceClient;
  task: Promise<AgentTask>;
  workspace: string;
  /** Working folder and home were made for this run. */
  ownFolders: boolean;
  env: Readonly<Record<string, string | undefined>>;
  place: Place;
  stop: Stopping;
  /** Aborts when nothing may be reported any more. */
  reporting: AbortSignal;
  reporter: Reporter;
  approvals: Approvals;
  harness: ExecutionHarness;
  keeping: DeferredSaver;
  record: ConversationRecord;
  /** The run's tree, of the task. */
  tree: (task: AgentTask) => ReturnType<typeof runTree>;
  notice: (name: string, data: unknown) => void;
  /** Resolves when what a turn led to beside it is reported. */
  settled: () => Promise<void>;
  onSuperseded: () => void;
  /** What a harness has to end a turn when the sandbox must go. */
  harnessGraceMs: number;
  /** What a harness has to end a turn that a person interrupted, before it is killed. */
  interruptGraceMs: number;
  inboxWaitMs: number;
}

/** Plays them all. Rejects when the run is stopped, and for faults of the agent itself. */
export async function runTurns(options: TurnsOptions): Promise<void> {
  const { client, workspace, ownFolders, env, place, stop, reporter, approvals, harness, keeping, notice } = options;
  const followUps = followUpQueue();
  const files = followUpFiles(async (attachments) => {
    const { writeAttachments } = await import('../workspace/attachments.ts');
    return await writeAttachments(attachments, { client, workspace, signal: stop.signal });
  });
  let isPlaying = false;
  let interruptedTurn = 0;
  /** Why this is the sandbox of a failed setup. */
  let setupFailure: string | undefined;
  /** What the next turn begins with: why things are not as the last one left them. */
  const openingNotices: [name: string, data: unknown][] = [];

  /** In the sandbox of a failed setup only what was said to it; the rest waits for one whose setup succeeds. */
  const isMine = (followUp: FollowUp) => setupFailure === undefined || followUp.debug === true;

  async function keepAtEnd(): Promise<void> {
    await keeping.keep(place.turn);
    await reporter.flush();
  }

  /** Nothing more comes. A turn that waits for a person ends now, so that what its harness remembers is kept. */
  const onLeave = () => {
    followUps.end();
    if (!isPlaying) return;
    harness.driver?.interrupt(options.harnessGraceMs);
  };

  async function firstTurn(task: AgentTask): Promise<HarnessOutcome> {
    options.tree(task);
    approvals.begin(task.agent_config.approval_policy, undefined);
    void watchInbox({
      client,
      signal: options.reporting,
      onCancel: () => stop.stop('cancelled'),
      onSuperseded: options.onSuperseded,
      onLeave,
      onFollowUp: (followUp) => void receive(followUp),
      onInterrupt: (ofTurn) => {
        interruptedTurn = ofTurn;
        if (ofTurn === place.turn) harness.driver?.interrupt(options.interruptGraceMs);
      },
      waitMs: options.inboxWaitMs,
    });
    return await begin(task);
  }

  /** An answer goes to who waits for it, its files to the workspace; all else waits for its turn. */
  async function receive(followUp: FollowUp): Promise<void> {
    const { attachments, message } = followUp;
    let said = message;
    if (attachments !== undefined && approvals.isAwaited(followUp)) {
      const names = await files.written(followUp).then(
        (written) => written.map(({ name }) => `attachments/${name}`).join(', '),
        (error: unknown) => `(they could not be written: ${error instanceof Error ? error.message : String(error)})`,
      );
      said = `${message}\n\nAttached files: ${names}`.trim();
    }
    if (approvals.answer({ ...followUp, message: said })) files.forget(followUp);
    else followUps.add(followUp);
  }

  async function nextTurn(task: AgentTask, followUp: FollowUp): Promise<HarnessOutcome> {
    reporter.emit({ type: 'follow_up_taken', follow_up_id: followUp.id });
    options.tree(task).orchestrate(followUp.mode);
    let attachments: readonly WrittenAttachment[];
    try {
      attachments = await files.written(followUp);
      files.forget(followUp);
    } catch (error) {
      // The setup was well: only this turn cannot be played.
      if (error instanceof SetupFailure) return { kind: 'failed', summary: '', message: error.message };
      throw error;
    }
    const message = approvals.turnMessage(followUp);
    const asked = setupFailure === undefined ? message : debugText(task, setupFailure, message);
    const text = promptText(task, asked, followUp.mode);
    const { decision: _, ...undecided } = task;
    const { driver, restarted } = await harness.start(setupFailure === undefined ? task : undecided);
    if (restarted !== undefined) openingNotices.push(['harness_restarted', { reason: restarted.reason }]);
    const before = restarted === undefined ? '' : options.record.text();
    const prompt = (loaded: boolean): ContentBlock[] => {
      const said = restarted === undefined || loaded ? text : promptAfterRestart(task, before, text);
      return [{ type: 'text', text: said }, ...fileLinks(attachments)];
    };
    return await playTurn(driver, message, prompt, attachments, () => {}, restarted?.session);
  }

  /** What a failure of the work before or between turns means for the run. */
  function failureOf(error: unknown): HarnessOutcome {
    if (stop.signal.aborted) throw error;
    if (error instanceof SetupFailure) {
      setupFailure ??= error.message;
      return { kind: 'failed', code: error.code, summary: '', message: error.message };
    }
    if (error instanceof ServiceRefusal)
      return { kind: 'failed', code: 'agent_process_failed', summary: '', message: error.message };
    throw error;
  }

  /** Sets up the workspace and plays the first turn. */
  async function begin(task: AgentTask): Promise<HarnessOutcome> {
    const step = setupSteps(reporter.emit);
    const start = () => harness.start(task);
    // Setup commands may be what installs the harness, and a home that is restored has its state. While git clones, it has the run
    // token in its environment, which a harness in a process of its own could read. Else both happen at the same time.
    const apart = setupCommands(task).length === 0 && task.workspace === undefined;
    const early = apart && (isBuiltin(task) || task.repositories.length === 0) ? start() : undefined;
    early?.catch(() => {});
    const prepared = await prepareWorkspace({ task, client, workspace, ownFolders, env, step, signal: stop.signal });
    const { attachments, restored } = prepared;
    if (prepared.notRestored !== undefined)
      openingNotices.push(['workspace_not_restored', { reason: prepared.notRestored }]);
    await keeping.begin(task, restored);
    const { driver: started } = await (early ?? start());
    if (!isBuiltin(task)) {
      // Its failure is told by the turn, with the same words.
      await step('harness', harnessName(task), () => started.initialised).catch(() => {});
    }
    stop.signal.throwIfAborted();
    // Not before: it is about the task itself, not about the talk in the sandbox of a failed setup.
    approvals.begin(task.agent_config.approval_policy, task.decision);
    return await playTurn(
      started,
      firstMessage(task),
      (loaded) => promptContent(task, attachments, { restored, loaded }),
      attachments,
      () => reporter.emit({ type: 'agent_started', harness: harnessName(task), model_id: modelId(task) }),
      restored && task.workspace?.kind === 'archive' ? task.workspace.session_id : undefined,
    );
  }

  async function playTurn(
    started: Driver,
    said: string,
    prompt: Turn['prompt'],
    attachments: readonly WrittenAttachment[],
    onStarted: () => void,
    load?: string,
  ): Promise<HarnessOutcome> {
    const stepId = newId();
    place.stepId = stepId;
    isPlaying = true;
    const ended = started.run({
      cwd: workspace,
      stepId,
      prompt,
      load,
      images: attachments.flatMap(({ image }) => image ?? []),
      onStarted: () => {
        onStarted();
        const begun = { type: 'turn_started' as const, step_id: stepId, prompt: said };
        reporter.emit(begun);
        options.record.see(begun);
        for (const [name, data] of openingNotices.splice(0)) notice(name, data);
        approvals.startTurn(stepId);
      },
      onEnded: (summary) =>
        reporter.emit({ type: 'turn_finished', step_id: stepId, ...(summary === '' ? {} : { summary }) }),
    });
    if (interruptedTurn === place.turn) started.interrupt(options.interruptGraceMs);
    return await ended.finally(() => {
      isPlaying = false;
    });
  }

  const resolved = Promise.race([options.task, stopped(stop.signal)]);
  let outcome = await resolved.then(firstTurn).catch(failureOf);
  for (;;) {
    stop.signal.throwIfAborted();
    await options.settled();
    await reporter.flush();
    if ((await client.finishTask(turnReport(outcome, place.turn))) === 'leave') return await keepAtEnd();
    void keeping.keep(place.turn);
    const followUp = await Promise.race([followUps.next(isMine), stopped(stop.signal)]);
    if (followUp === undefined) return await keepAtEnd();
    await keeping.abort();
    place.turn += 1;
    outcome = await resolved.then((task) => nextTurn(task, followUp)).catch(failureOf);
  }
}
