import type { AgentTask } from '@runyard/contract/agent-protocol';
import { delay } from '@runyard/contract/backoff';
import { maxSnapshotFiles } from '@runyard/contract/limits';
import { openAgentSocket } from './agent-socket/socket.ts';
import { createApprovals } from './approvals/approvals.ts';
import type { ArtifactRequest } from './artifacts/report.ts';
import { killMarked } from './commands/processes.ts';
import { declaredFiles } from './handoff/declared.ts';
import { conversationRecord } from './harness/conversation-record.ts';
import { executionHarness } from './harness/execution-harness.ts';
import { watchPullRequests } from './pull-requests/watch.ts';
import { startReporter } from './reporting/reporter.ts';
import { runTree } from './run-tree/tree.ts';
import type { ServiceClient } from './service/client.ts';
import { Superseded } from './service/errors.ts';
import { stopDeadline, stopping } from './stopping.ts';
import { type Place, runTurns } from './turns/run-turns.ts';
import { deferredSaver } from './workspace-archive/deferred-saver.ts';

export interface AgentRunOptions {
  client: ServiceClient;
  /** The answer to `resolve-prompt`, which was asked for while this was loaded. */
  task: Promise<AgentTask>;
  /** Folder the run works in. */
  workspace: string;
  /** Working folder and home were made for this run: the agent may send what they hold. */
  ownFolders: boolean;
  /** Environment for everything the run starts; holds no credential. */
  env: Readonly<Record<string, string | undefined>>;
  /** Called with the function that ends the run from outside: SIGTERM. */
  onStarted?: (terminate: () => void) => void;
  timing?: Partial<typeof defaultTiming>;
}

/** All of a cancel fits into the 5 s after which the worker kills the sandbox. */
const defaultTiming = {
  /** From the cancel: what the harness has to stop by itself. What is left open then has to be told in the rest, also by a slow machine. */
  harnessGraceMs: 3_000,
  /** From a person's interrupt: what the harness has to end its turn. */
  interruptGraceMs: 10_000,
  /** From the cancel: when the process is gone, whatever is still open. */
  exitMs: 4_850,
  /** For `initialize` and `session/new` each. */
  harnessStartMs: 60_000,
  inboxWaitMs: 25_000,
};

/** How the agent process should end. */
export type AgentExit = { exitCode: number };

/** Plays one execution from the task to the last report. Rejects only for faults of the agent itself. */
export async function runAgent(options: AgentRunOptions): Promise<AgentExit> {
  const timing = { ...defaultTiming, ...options.timing };
  const { client, workspace, ownFolders } = options;
  const stop = stopping();
  const reporting = new AbortController();
  const superseded = () => {
    stop.stop('superseded');
    reporting.abort(new Superseded('superseded'));
  };
  options.onStarted?.(() => stop.stop('terminated'));
  const reporter = startReporter({
    client,
    signal: reporting.signal,
    onSuperseded: superseded,
    onRefused: (event, reason) => {
      if (event.type === 'blocked') approvals.refused(event.request.request_id, reason);
    },
  });
  const reportArtifact = async (request: ArtifactRequest, cwd: string) => {
    const artifacts = await import('./artifacts/report.ts');
    if (request.type === 'PULL_REQUEST' && request.url !== undefined) pullRequests.know(request.url);
    return artifacts.reportArtifact(request, { client, cwd, workspace, signal: reporting.signal });
  };
  const pullRequests = watchPullRequests(async (noticed) => {
    const result = await reportArtifact({ type: 'PULL_REQUEST', ...noticed }, workspace);
    if (!result.ok) throw new Error(result.message);
  });
  const record = conversationRecord();
  const declared = declaredFiles(workspace, maxSnapshotFiles);
  /** Of the task, as soon as it is there. */
  let tree: ReturnType<typeof runTree> | undefined;
  const treeOf = (task: AgentTask) => {
    tree ??= runTree(client, task);
    return tree;
  };
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
  const marker = `RUNYARD_AGENT_SOCKET=${socket.path}`;
  const place: Place = { turn: 1, stepId: '' };
  const notice = (name: string, data: unknown) => reporter.emit({ type: 'notice', step_id: place.stepId, name, data });
  const keeping = deferredSaver({
    client,
    workspace,
    ownFolders,
    env,
    signal: reporting.signal,
    declared: declared.list,
    session: () => harness.driver?.loadableSession,
    onLeftOut: (what, reason) => notice('handoff_left_out', { what, reason }),
    onNotKept: (reason) => notice('workspace_not_kept', { reason }),
  });
  const approvals = createApprovals({
    emit: reporter.emit,
    flush: reporter.flush,
    // A worker that dies while somebody thinks takes nothing with it.
    onWait: () => void keeping.keep(place.turn),
    onGo: () => keeping.abort(),
  });
  const harness = executionHarness({
    client,
    reporter,
    workspace,
    env,
    marker,
    emit: (event) => {
      reporter.emit(event);
      pullRequests.see(event);
      record.see(event);
    },
    reportArtifact: (request) => reportArtifact(request, workspace),
    handoff: (paths) => declared.declare(paths, workspace),
    tree: treeOf,
    approvals,
    turn: () => place.turn,
    stop: stop.signal,
    reporting: reporting.signal,
    startTimeoutMs: timing.harnessStartMs,
  });
  let stoppedAt: number | undefined;
  const onStop = () => {
    stoppedAt = performance.now();
    harness.driver?.cancel();
    if (stop.reason === 'superseded') void harness.driver?.kill();
  };
  stop.signal.addEventListener('abort', onStop, { once: true });

  try {
    const worked = runTurns({
      client,
      task: options.task,
      workspace,
      ownFolders,
      env,
      place,
      stop,
      reporting: reporting.signal,
      reporter,
      approvals,
      harness,
      keeping,
      record,
      tree: treeOf,
      notice,
      settled: pullRequests.settled,
      onSuperseded: superseded,
      harnessGraceMs: timing.harnessGraceMs,
      interruptGraceMs: timing.interruptGraceMs,
      inboxWaitMs: timing.inboxWaitMs,
    }).catch((error: unknown) => {
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
    await Promise.race([harness.driver?.kill(), delay(2_000)]);
    killMarked(marker);
    socket.close();
    reporting.abort(new Error('the run is over'));
  }

  /** The end of a cancelled, terminated or superseded run: within `exitMs` of the stop, whatever does not answer. */
  async function leave(worked: Promise<void>): Promise<AgentExit> {
    const exitCode = stop.reason === 'terminated' ? 128 + 15 : 0;
    const left = () => Math.max(0, timing.exitMs - (performance.now() - (stoppedAt ?? 0)));
    const work = async () => {
      await harness.driver?.kill();
      // The driver settles what the harness left open as soon as its process is gone.
      await worked.catch(() => {});
      if (stop.reason === 'superseded') return;
      await keeping.keep(place.turn);
      await reporter.flush();
      await client.reportShutdown(stop.reason ?? 'cancelled', { signal: reporting.signal });
    };
    await Promise.race([work().catch(() => {}), delay(left())]);
    return { exitCode };
  }
}
