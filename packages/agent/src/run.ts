import { Readable } from 'node:stream';
import type { ContentBlock } from '@agentclientprotocol/sdk';
import type { AgentAttachment, AgentTask } from '@runyard/contract/agent-protocol';
import { createApprovals } from './approvals/approvals.ts';
import type { ArtifactRequest } from './artifacts/report.ts';
import { openAgentSocket } from './artifacts/socket.ts';
import { killMarked } from './commands/processes.ts';
import { followUpQueue } from './follow-ups.ts';
import type { Driver, Turn } from './harness/driver.ts';
import type { HarnessOutcome } from './harness/outcome.ts';
import { debugText, fileLinks, firstMessage, promptContent, promptText } from './harness/prompt.ts';
import { harnessName, isBuiltin, modelId, startHarness } from './harness/select.ts';
import { newId } from './new-id.ts';
import { watchPullRequests } from './pull-requests/watch.ts';
import { startReporter } from './reporting/reporter.ts';
import { runTree } from './run-tree/tree.ts';
import { wait } from './service/backoff.ts';
import { type ServiceClient, ServiceRefusal, Superseded } from './service/client.ts';
import { type FollowUp, watchInbox } from './service/inbox.ts';
import { declaredFiles } from './snapshot/declared.ts';
import { maxSnapshotFiles } from './snapshot/limits.ts';
import { stopDeadline, stopped, stopping } from './stopping.ts';
import { turnReport } from './turn-report.ts';
import type { WrittenAttachment } from './workspace/attachments.ts';
import { keepWorkspaceBetweenTurns } from './workspace/kept/keeping.ts';
import { prepareWorkspace, setupCommands } from './workspace/prepare.ts';
import { SetupFailure } from './workspace/setup-failure.ts';
import { setupSteps } from './workspace/setup-steps.ts';

export interface AgentRunOptions {
  client: ServiceClient;
  /** The answer to `resolve-prompt`, which was asked for while this was loaded. */
  task: Promise<AgentTask>;
  /** Folder the run works in. */
  workspace: string;
  /** Environment for everything the run starts; holds no credential. */
  env: Readonly<Record<string, string | undefined>>;
  /** Called with the function that ends the run from outside: SIGTERM. */
  onStarted?: (terminate: () => void) => void;
  timing?: Partial<typeof defaultTiming>;
}

/** All of a cancel fits into the 5 s after which the worker kills the sandbox. */
export const defaultTiming = {
  /** From the cancel: what the harness has to stop by itself. */
  harnessGraceMs: 4_000,
  /** From the cancel: when the process is gone, whatever is still open. */
  exitMs: 4_850,
  /** For `initialize` and `session/new` each. */
  harnessStartMs: 60_000,
  inboxWaitMs: 25_000,
};

/** What the service keeps of a harness's memory. */
const maxMemoryBytes = 32 * 1024 * 1024;

/** How the agent process should end. */
export type AgentExit = { exitCode: number };

/** Plays one execution from the task to the last report. Rejects only for faults of the agent itself. */
export async function runAgent(options: AgentRunOptions): Promise<AgentExit> {
  const timing = { ...defaultTiming, ...options.timing };
  const { client, workspace } = options;
  const stop = stopping();
  const reporting = new AbortController();
  const superseded = () => {
    stop.stop('superseded');
    reporting.abort(new Superseded('superseded'));
  };
  options.onStarted?.(() => stop.stop('terminated'));
  const reporter = startReporter({ client, signal: reporting.signal, onSuperseded: superseded });
  const reportArtifact = async (request: ArtifactRequest, cwd: string) => {
    const artifacts = await import('./artifacts/report.ts');
    if (request.type === 'PULL_REQUEST' && request.url !== undefined) pullRequests.know(request.url);
    return artifacts.reportArtifact(request, { client, cwd, signal: reporting.signal });
  };
  const pullRequests = watchPullRequests(async (noticed) => {
    const result = await reportArtifact({ type: 'PULL_REQUEST', ...noticed }, workspace);
    if (!result.ok) throw new Error(result.message);
  });
  const declared = declaredFiles(workspace, maxSnapshotFiles);
  /** Of the task, as soon as it is there. */
  let tree: ReturnType<typeof runTree> | undefined;
  const socket = await openAgentSocket({
    artifact: ({ artifact, cwd }) => reportArtifact(artifact, cwd),
    handoff: declared.declare,
    tree: async (request, gone) => {
      if (tree === undefined) return { ok: false, message: 'the run has not begun' };
      const { answerTreeRequest } = await import('./run-tree/requests.ts');
      return await answerTreeRequest(tree, request, AbortSignal.any([gone, stop.signal]));
    },
  });
  const env = { ...options.env, RUNYARD_AGENT_SOCKET: socket.path };
  const keeping = keepWorkspaceBetweenTurns({
    client,
    workspace,
    env,
    signal: reporting.signal,
    declared: declared.list,
    session: () => driver?.loadableSession,
    onLeftOut: (what, reason) => notice('handoff_left_out', { what, reason }),
    onNotKept: (reason) => notice('workspace_not_kept', { reason }),
  });
  /** Why the first turn does not find the workspace of an earlier execution. */
  let notRestored: string | undefined;
  /** Of the last turn that began. */
  let lastStepId = '';
  const notice = (name: string, data: unknown) => reporter.emit({ type: 'notice', step_id: lastStepId, name, data });
  const marker = `RUNYARD_AGENT_SOCKET=${socket.path}`;
  let driver: Driver | undefined;
  let starting: Promise<Driver> | undefined;
  const followUps = followUpQueue();
  const approvals = createApprovals({
    emit: reporter.emit,
    flush: reporter.flush,
    // A worker that dies while somebody thinks takes nothing with it.
    onWait: () => void keeping.keep(turn),
    onGo: () => keeping.abort(),
  });
  let isPlaying = false;
  /** Why this is the sandbox of a failed setup. */
  let setupFailure: string | undefined;
  /** 1, 2, … in this execution. */
  let turn = 1;
  let interruptedTurn = 0;
  let stoppedAt: number | undefined;
  const onStop = () => {
    stoppedAt = performance.now();
    driver?.cancel();
    if (stop.reason === 'superseded') void driver?.kill();
  };
  stop.signal.addEventListener('abort', onStop, { once: true });

  /** Nothing more comes. A turn that waits for a person ends now, so that what its harness remembers is kept. */
  const onLeave = () => {
    followUps.end();
    if (!isPlaying) return;
    driver?.interrupt();
    setTimeout(() => void driver?.kill(), timing.harnessGraceMs).unref();
  };

  /** Turn after turn, until the service has no further one. */
  async function work(): Promise<void> {
    const resolved = Promise.race([options.task, stopped(stop.signal)]);
    let outcome = await resolved.then(firstTurn).catch(failureOf);
    for (;;) {
      stop.signal.throwIfAborted();
      await pullRequests.settled();
      await reporter.flush();
      if ((await client.finishTask(turnReport(outcome, turn))) === 'leave') return await keepAtEnd();
      void keeping.keep(turn);
      const followUp = await Promise.race([followUps.next(isMine), stopped(stop.signal)]);
      if (followUp === undefined) return await keepAtEnd();
      await keeping.abort();
      turn += 1;
      outcome = await resolved.then((task) => nextTurn(task, followUp)).catch(failureOf);
    }
  }

  /** In the sandbox of a failed setup only what was said to it; the rest waits for one whose setup succeeds. */
  const isMine = (followUp: FollowUp) => setupFailure === undefined || followUp.debug === true;

  async function keepAtEnd(): Promise<void> {
    await keeping.keep(turn);
    await reporter.flush();
  }

  async function firstTurn(task: AgentTask): Promise<HarnessOutcome> {
    tree = runTree(client, task);
    approvals.begin(task.agent_config.approval_policy, task.decision);
    void watchInbox({
      client,
      signal: reporting.signal,
      onCancel: () => stop.stop('cancelled'),
      onSuperseded: superseded,
      onLeave,
      onFollowUp: (followUp) => void receive(followUp),
      onInterrupt: (ofTurn) => {
        interruptedTurn = ofTurn;
        if (ofTurn === turn) driver?.interrupt();
      },
      waitMs: timing.inboxWaitMs,
    });
    return await begin(task);
  }

  /** An answer goes to who waits for it, its files to the workspace; all else waits for its turn. */
  async function receive(followUp: FollowUp): Promise<void> {
    const { attachments: files, message } = followUp;
    let said = message;
    if (files !== undefined && approvals.isAwaited(followUp)) {
      const names = await write(files).then(
        (written) => written.map(({ name }) => `attachments/${name}`).join(', '),
        (error: unknown) => `(they could not be written: ${error instanceof Error ? error.message : String(error)})`,
      );
      said = `${message}\n\nAttached files: ${names}`.trim();
    }
    if (!approvals.answer({ ...followUp, message: said })) followUps.add(followUp);
  }

  async function nextTurn(task: AgentTask, followUp: FollowUp): Promise<HarnessOutcome> {
    reporter.emit({ type: 'follow_up_taken', follow_up_id: followUp.id });
    tree?.orchestrate(followUp.mode);
    const files = followUp.attachments ?? [];
    let attachments: WrittenAttachment[] = [];
    try {
      if (files.length > 0) attachments = await write(files);
    } catch (error) {
      // The setup was well: only this turn cannot be played.
      if (error instanceof SetupFailure) return { kind: 'failed', summary: '', message: error.message };
      throw error;
    }
    const message = approvals.turnMessage(followUp);
    const asked = setupFailure === undefined ? message : debugText(task, setupFailure, message);
    const text = promptText(task, asked, followUp.mode);
    const prompt: ContentBlock[] = [{ type: 'text', text }, ...fileLinks(attachments)];
    return await playTurn(
      await harness(task),
      message,
      () => prompt,
      attachments,
      () => {},
    );
  }

  async function write(files: readonly AgentAttachment[]): Promise<WrittenAttachment[]> {
    const { writeAttachments } = await import('./workspace/attachments.ts');
    return await writeAttachments(files, { client, workspace, signal: stop.signal });
  }

  /** What a failure of the work before or between turns means for the run. */
  function failureOf(error: unknown): HarnessOutcome {
    if (stop.signal.aborted) throw error;
    if (error instanceof SetupFailure) {
      setupFailure ??= error.message;
      approvals.askNobody('nobody can be asked in the sandbox of a failed setup');
    }
    if (error instanceof SetupFailure) return { kind: 'failed', code: error.code, summary: '', message: error.message };
    if (error instanceof ServiceRefusal)
      return { kind: 'failed', code: 'agent_process_failed', summary: '', message: error.message };
    throw error;
  }

  /** Of the turn that just ended; losing it costs a later execution the harness's own view, not the conversation. */
  async function remember(memory: string): Promise<void> {
    const bytes = Buffer.from(memory);
    const signal = AbortSignal.any([reporting.signal, AbortSignal.timeout(stop.signal.aborted ? 1_000 : 30_000)]);
    await client
      .upload(
        `/api/v1/harness-support/memory?turn=${turn}`,
        () => Readable.from([bytes]),
        bytes.length,
        'application/octet-stream',
        { signal },
      )
      .catch((error: unknown) => process.stderr.write(`agent: the memory was not kept: ${String(error)}\n`));
  }

  /** The harness, started once. */
  function harness(task: AgentTask): Promise<Driver> {
    starting ??= (async () => {
      const { conversation } = task;
      const memory = conversation?.kind === 'memory' ? await client.download(conversation.path, maxMemoryBytes) : null;
      driver = await startHarness({
        task,
        workspace,
        env,
        marker,
        connection: client.connection,
        emit: (event) => {
          reporter.emit(event);
          pullRequests.see(event);
        },
        ready: () => reporter.ready(),
        saturated: () => reporter.saturated,
        reportArtifact: (request) => reportArtifact(request, workspace),
        handoff: (paths) => declared.declare(paths, workspace),
        tree: tree ?? runTree(client, task),
        approvals,
        startTimeoutMs: timing.harnessStartMs,
        memory: memory?.toString(),
        remember,
      });
      if (stop.signal.aborted) driver.cancel();
      return driver;
    })();
    return starting;
  }

  /** Sets up the workspace and plays the first turn. */
  async function begin(task: AgentTask): Promise<HarnessOutcome> {
    const step = setupSteps(reporter.emit);
    const start = () => harness(task);
    // Setup commands may be what installs the harness, and a home that is restored has its state; else both happen at the same time.
    const early = setupCommands(task).length === 0 && task.workspace === undefined ? start() : undefined;
    early?.catch(() => {});
    const prepared = await prepareWorkspace({ task, client, workspace, env, step, signal: stop.signal });
    const { attachments, restored } = prepared;
    notRestored = prepared.notRestored;
    await keeping.begin(task, restored);
    const started = await (early ?? start());
    if (!isBuiltin(task)) {
      // Its failure is told by the turn, with the same words.
      await step('harness', harnessName(task), () => started.initialised).catch(() => {});
    }
    stop.signal.throwIfAborted();
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
    lastStepId = stepId;
    isPlaying = true;
    const ended = started.run({
      cwd: workspace,
      stepId,
      prompt,
      load,
      images: attachments.flatMap(({ image }) => image ?? []),
      onStarted: () => {
        onStarted();
        reporter.emit({ type: 'turn_started', step_id: stepId, prompt: said });
        if (notRestored !== undefined) notice('workspace_not_restored', { reason: notRestored });
        notRestored = undefined;
        approvals.startTurn(stepId);
      },
      onEnded: (summary) =>
        reporter.emit({ type: 'turn_finished', step_id: stepId, ...(summary === '' ? {} : { summary }) }),
    });
    if (interruptedTurn === turn) started.interrupt();
    return await ended.finally(() => {
      isPlaying = false;
    });
  }

  try {
    const worked = work().catch((error: unknown) => {
      if (stop.signal.aborted) return;
      if (!(error instanceof Superseded)) throw error;
      superseded();
    });
    await Promise.race([worked, stopDeadline(stop, timing.harnessGraceMs)]);
    if (stop.signal.aborted) return await leave(worked);
    await client.reportShutdown('finished');
    return { exitCode: 0 };
  } catch (error) {
    if (error instanceof Superseded || stop.reason === 'superseded') return { exitCode: 0 };
    throw error;
  } finally {
    await Promise.race([driver?.kill(), wait(2_000)]);
    killMarked(marker);
    socket.close();
    reporting.abort(new Error('the run is over'));
  }

  /** The end of a cancelled, terminated or superseded run: within `exitMs` of the stop, whatever does not answer. */
  async function leave(worked: Promise<void>): Promise<AgentExit> {
    const exitCode = stop.reason === 'terminated' ? 128 + 15 : 0;
    const left = () => Math.max(0, timing.exitMs - (performance.now() - (stoppedAt ?? 0)));
    const work = async () => {
      await driver?.kill();
      // The driver settles what the harness left open as soon as its process is gone.
      await worked.catch(() => {});
      if (stop.reason === 'superseded') return;
      await keeping.keep(turn);
      await reporter.flush();
      await client.reportShutdown(stop.reason ?? 'cancelled', { signal: reporting.signal });
    };
    await Promise.race([work().catch(() => {}), wait(left())]);
    return { exitCode };
  }
}
