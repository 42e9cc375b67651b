import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { delay } from '@runyard/system/backoff';
import { monotonicMs } from './builtin-modules.ts';
import { killMarked } from './commands/processes.ts';
import type { GrantedSecrets } from './granted-secrets/granted-secrets.ts';
import { openRunParts } from './run-parts.ts';
import type { ServiceClient } from './service/client.ts';
import { Superseded } from './service/errors.ts';
import { stopDeadline } from './stopping.ts';
import { runTurns } from './turns/run-turns.ts';

export interface AgentRunOptions {
  client: ServiceClient;
  /** The answer to `resolve-prompt`. The request was sent before this module was loaded. */
  task: Promise<AgentTask>;
  secrets: GrantedSecrets;
  /** Working folder of the run. */
  workspace: string;
  /** True: the working folder and the home were created for this run. So the agent may send their contents. */
  ownFolders: boolean;
  /** True: processes, network and writable file systems of the sandbox belong to this run alone. */
  isSeparate: boolean;
  /** Environment of all processes that the run starts. It contains no credential. */
  env: Readonly<Record<string, string | undefined>>;
  /** Unix socket of the worker's proxy; absent if there is no proxy. */
  egressSocket?: string | undefined;
  /** Called with a function that ends the run. The caller of `runAgent` calls this function on SIGTERM. */
  onStarted?: (terminate: () => void) => void;
  timing?: Partial<typeof defaultTiming>;
}

/** All times after a cancel are shorter than 5 s, because the worker kills the sandbox 5 s after the cancel. */
const defaultTiming = {
  /**
   * Time for the harness to stop by itself after a cancel. The rest of the 5 s is enough for the last reports, even on a slow machine.
   */
  harnessGraceMs: 3_000,
  /** Time for the harness to end its turn after a person has interrupted the turn. */
  interruptGraceMs: 10_000,
  /** Time from a cancel until the agent exits in any case. */
  exitMs: 4_850,
  /** Timeout for each of `initialize`, `session/new` and `session/load`. */
  harnessStartMs: 60_000,
  inboxWaitMs: 25_000,
};

/** Time in which the harness must exit at the end of the execution. */
const killTimeoutMs = 2_000;

/** Runs one execution from its task to the last report and returns the exit code. Rejects only if the agent itself has a fault. */
export async function runAgent(options: AgentRunOptions): Promise<{ exitCode: number }> {
  const { client, task, secrets, workspace, ownFolders, isSeparate, onStarted } = options;
  const timing = { ...defaultTiming, ...options.timing };
  const { harnessGraceMs, interruptGraceMs, inboxWaitMs, harnessStartMs } = timing;
  const { env, egressSocket } = options;
  const parts = await openRunParts({ client, secrets, workspace, ownFolders, env, egressSocket, harnessStartMs });
  const { stop, harness, saver, position, reporter, reporting } = parts;
  onStarted?.(() => stop.stop('terminated'));
  let stoppedAt: number | undefined;
  const onStop = () => {
    stoppedAt = monotonicMs();
    harness.driver?.cancel();
    if (stop.reason === 'superseded') void harness.driver?.kill();
  };
  stop.signal.addEventListener('abort', onStop, { once: true });

  try {
    const turns = runTurns({
      ...parts,
      client,
      task,
      secrets,
      workspace,
      ownFolders,
      isSeparate,
      reporting: reporting.signal,
      sideReports: parts.pullRequests.reported,
      harnessGraceMs,
      interruptGraceMs,
      inboxWaitMs,
    }).catch((error: unknown) => {
      if (stop.signal.aborted) return;
      if (!(error instanceof Superseded)) throw error;
      parts.onSuperseded();
    });
    await Promise.race([turns, stopDeadline(stop, harnessGraceMs)]);
    if (stop.signal.aborted) return await leave(turns);
    return { exitCode: 0 };
  } catch (error) {
    if (error instanceof Superseded || stop.reason === 'superseded') return { exitCode: 0 };
    throw error;
  } finally {
    await Promise.race([Promise.all([harness.driver?.kill(), parts.services.stop()]), delay(killTimeoutMs)]);
    await Promise.race([parts.mcp.close(), delay(killTimeoutMs)]);
    killMarked(parts.marker);
    parts.socket.close();
    parts.egress?.close();
    reporting.abort(new Error('the run is over'));
  }

  /** Ends a cancelled, terminated or superseded run within `exitMs` of the stop, even if the harness or the service does not answer. */
  async function leave(turns: Promise<void>): Promise<{ exitCode: number }> {
    const exitCode = stop.reason === 'terminated' ? 128 + 15 : 0;
    const reportEnd = async () => {
      await harness.driver?.kill();
      // Wait for the turns, because the driver ends the open actions of the harness when the process of the harness has exited.
      await turns.catch(() => {});
      if (stop.reason === 'superseded') return;
      await saver.save(position.turn);
      await reporter.flush();
      await client.reportShutdown(stop.reason ?? 'cancelled', { signal: reporting.signal });
    };
    const leftMs = Math.max(0, timing.exitMs - (monotonicMs() - (stoppedAt ?? 0)));
    await Promise.race([reportEnd().catch(() => {}), delay(leftMs)]);
    return { exitCode };
  }
}
