import type { AgentTask, FinishTask } from '@runyard/contract/agent-protocol';
import type { ArtifactRequest } from './artifacts/report.ts';
import { openAgentSocket } from './artifacts/socket.ts';
import { killMarked } from './commands/processes.ts';
import type { Driver } from './harness/driver.ts';
import type { HarnessOutcome } from './harness/outcome.ts';
import { harnessName, isBuiltin, promptContent, startHarness } from './harness/select.ts';
import { newId } from './new-id.ts';
import { watchPullRequests } from './pull-requests/watch.ts';
import { type Reporter, startReporter } from './reporting/reporter.ts';
import { wait } from './service/backoff.ts';
import { type ServiceClient, ServiceRefusal, Superseded } from './service/client.ts';
import { watchInbox } from './service/inbox.ts';
import { type Stopping, stopping } from './stopping.ts';
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
  const socket = await openAgentSocket(({ artifact, cwd }) => reportArtifact(artifact, cwd));
  const env = { ...options.env, RUNYARD_AGENT_SOCKET: socket.path };
  const marker = `RUNYARD_AGENT_SOCKET=${socket.path}`;
  let driver: Driver | undefined;
  let stoppedAt: number | undefined;
  const onStop = () => {
    stoppedAt = performance.now();
    driver?.cancel();
    if (stop.reason === 'superseded') void driver?.kill();
  };
  stop.signal.addEventListener('abort', onStop, { once: true });

  async function work(): Promise<HarnessOutcome> {
    const task = await Promise.race([options.task, stopped(stop.signal)]);
    void watchInbox({
      client,
      signal: reporting.signal,
      onCancel: () => stop.stop('cancelled'),
      onSuperseded: superseded,
      waitMs: timing.inboxWaitMs,
    });
    return await workOn(task);
  }

  async function workOn(task: AgentTask): Promise<HarnessOutcome> {
    const step = setupSteps(reporter.emit);
    const start = async () => {
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
        startTimeoutMs: timing.harnessStartMs,
      });
      if (stop.signal.aborted) driver.cancel();
      return driver;
    };
    // Setup commands may be what installs the harness; else both happen at the same time.
    const early = setupCommands(task).length === 0 ? start() : undefined;
    early?.catch(() => {});
    const attachments = await prepareWorkspace({ task, client, workspace, env, step, signal: stop.signal });
    const started = await (early ?? start());
    if (!isBuiltin(task)) {
      // Its failure is told by the turn, with the same words.
      await step('harness', harnessName(task), () => started.initialised).catch(() => {});
    }
    stop.signal.throwIfAborted();
    const stepId = newId();
    return await started.run({
      cwd: workspace,
      stepId,
      prompt: promptContent(task, attachments),
      onStarted: () => {
        reporter.emit({ type: 'agent_started', harness: harnessName(task), model_id: modelId(task) });
        reporter.emit({ type: 'turn_started', step_id: stepId, prompt: task.prompt });
      },
      onEnded: (summary) =>
        reporter.emit({ type: 'turn_finished', step_id: stepId, ...(summary === '' ? {} : { summary }) }),
    });
  }

  try {
    const worked = work().catch((error: unknown): HarnessOutcome => {
      if (stop.signal.aborted) return { kind: 'cancelled' };
      if (error instanceof Superseded) {
        superseded();
        return { kind: 'cancelled' };
      }
      if (error instanceof SetupFailure)
        return { kind: 'failed', code: error.code, summary: '', message: error.message };
      if (error instanceof ServiceRefusal)
        return { kind: 'failed', code: 'agent_process_failed', summary: '', message: error.message };
      throw error;
    });
    const outcome = await Promise.race([worked, stopDeadline(stop, timing.harnessGraceMs)]);
    if (stop.signal.aborted) return await leave(worked);
    await pullRequests.settled();
    await finish(client, reporter, outcome);
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
  async function leave(worked: Promise<HarnessOutcome>): Promise<AgentExit> {
    const exitCode = stop.reason === 'terminated' ? 128 + 15 : 0;
    const left = () => Math.max(0, timing.exitMs - (performance.now() - (stoppedAt ?? 0)));
    const work = async () => {
      await driver?.kill();
      // The driver settles what the harness left open as soon as its process is gone.
      await worked.catch(() => {});
      if (stop.reason === 'superseded') return;
      await reporter.flush();
      await client.reportShutdown(stop.reason ?? 'cancelled', { signal: reporting.signal });
    };
    await Promise.race([work().catch(() => {}), wait(left())]);
    return { exitCode };
  }
}

/** Rejects when the work must stop. */
function stopped(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/** Resolves when the harness has had its time after a stop. */
function stopDeadline(stop: Stopping, graceMs: number): Promise<HarnessOutcome> {
  return new Promise((resolve) => {
    const onStop = () => {
      const timer = setTimeout(() => resolve({ kind: 'cancelled' }), stop.reason === 'superseded' ? 0 : graceMs);
      timer.unref();
    };
    if (stop.signal.aborted) onStop();
    else stop.signal.addEventListener('abort', onStop, { once: true });
  });
}

async function finish(client: ServiceClient, reporter: Reporter, outcome: HarnessOutcome): Promise<void> {
  await reporter.flush();
  await client.finishTask(finishTask(outcome));
  await client.reportShutdown('finished');
}

function finishTask(outcome: HarnessOutcome): FinishTask {
  switch (outcome.kind) {
    case 'succeeded':
      return { success: true, summary: outcome.summary };
    case 'failed':
      return {
        success: false,
        summary: outcome.summary || outcome.message,
        error: { message: outcome.message, ...(outcome.code === undefined ? {} : { code: outcome.code }) },
      };
    case 'cancelled':
      return {
        success: false,
        summary: 'cancelled',
        error: { message: 'The agent was stopped before it had finished.' },
      };
  }
}

function modelId(task: AgentTask): string {
  return task.harness.model?.id ?? (isBuiltin(task) ? 'runbook' : (task.agent_config.model_id ?? task.harness.type));
}
