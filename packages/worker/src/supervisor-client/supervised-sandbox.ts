/**
 * The worker's side of a supervised sandbox. The worker uses this sandbox like any other sandbox, but the processes of the sandbox are
 * children of a supervisor process.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DeniedConnections } from '@runyard/contract/egress/denied';
import { type ProcessIdentity, stateOf } from '@runyard/system/process-identity';
import type { SandboxEgress } from '../egress/egress.ts';
import { openCgroup } from '../sandboxes/cgroups/group.ts';
import { openEngine } from '../sandboxes/engine/engine.ts';
import { removeSandbox } from '../sandboxes/engine/names.ts';
import { removeFolders } from '../sandboxes/folders.ts';
import { endMarked, logSlow, type SlowLog } from '../sandboxes/markers.ts';
import { type Sandbox, SandboxError, type SandboxExit } from '../sandboxes/sandbox.ts';
import type { SandboxTraces, SystemFiles } from '../sandboxes/supervisors.ts';
import { killProcesses } from '../state/processes.ts';
import type { Channel } from './channels.ts';
import { logOf } from './files.ts';
import type { Order, Report } from './messages.ts';
import { readEnd } from './records.ts';

export interface SupervisedLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** The supervisor of a sandbox. It may have other sandboxes too. */
export interface Supervisor {
  /** Id that is in the label of the supervisor and in the name of the file with its standard error. */
  readonly id: string;
  readonly process: ProcessIdentity;
  readonly lines: Channel<Order, Report>;
  readonly folder: string;
  readonly traces: SandboxTraces;
  readonly log: SupervisedLog;
}

export interface SupervisedSandbox extends Sandbox {
  /** Returns false if the supervisor of the sandbox has ended. */
  readonly isAlive: () => boolean;
  /** Resolves if the sandbox ends before a run was started in it. */
  readonly gone: Promise<void>;
  /** Prepares the sandbox, and resolves with its workspace. Rejects with a `SandboxError`. Not called for adopted sandboxes. */
  prepare(preparation: unknown, adoptSeconds: number): Promise<string>;
  /** Connects the sandbox to the proxy for the hosts that its environment allows. */
  openEgress(egress: SandboxEgress): Promise<void>;
  /** Gives the sandbox its own Debian. If this fails, `spawn` rejects. */
  openSystem(system: SystemFiles): Promise<void>;
  /**
   * Calls `report` for each denied connection. For an adopted sandbox, this includes the connections that the supervisor reported before
   * this call.
   */
  onDenied(report: SandboxEgress['report']): void;
  /** Leaves the sandbox to the next worker. After this call, `ended` never resolves. */
  letGo(): void;
}

/** Returns the worker's side of a sandbox. `workspace`: the workspace of an adopted sandbox; empty if the sandbox is not prepared yet. */
export function superviseSandbox(supervisor: Supervisor, workspace = ''): SupervisedSandbox {
  const { folder, traces, log, lines } = supervisor;
  const prepared = Promise.withResolvers<string>();
  const started = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<SandboxExit>();
  const end = Promise.withResolvers<void>();
  for (const { promise } of [prepared, started]) promise.catch(() => {});
  let isStarted = workspace !== '';
  /** True after the sandbox has ended completely, or after it was left to the next worker. */
  let isOver = false;
  let isOpen = true;
  /** Denied connections that were reported before `onDenied` was called. */
  const denied: DeniedConnections[] = [];
  let reportDenied = (each: DeniedConnections): void => void denied.push(each);
  const onDenied: SupervisedSandbox['onDenied'] = (report) => {
    reportDenied = report;
    for (const each of denied.splice(0)) report(each);
  };

  const receive = (report: Report): void => {
    if (report.type === 'not_prepared' || report.type === 'disposed' || report.type === 'ended') isOver = true;
    switch (report.type) {
      case 'prepared':
        workspace = report.workspace;
        prepared.resolve(workspace);
        break;
      case 'not_prepared':
        prepared.reject(new SandboxError(report.phase, report.reason, report.message));
        end.resolve();
        break;
      case 'started':
        started.resolve();
        break;
      case 'disposed':
        started.reject(new SandboxError('spawn', 'sandbox_ended', 'the sandbox ended before its agent got its run'));
        end.resolve();
        break;
      case 'denied':
        reportDenied(report.denied);
        break;
      case 'ended':
        // If the supervisor has not reported the start, resolves `started` too. The exit then explains why the start failed.
        started.resolve();
        ended.resolve(report.exit);
        break;
      case 'warning':
        log.warn({ sandbox: traces.id, ...report.fields }, report.message);
    }
  };

  /** Is called when the connection to the supervisor is lost. */
  const lose = async (): Promise<void> => {
    const recorded = await endLost(supervisor);
    for (const each of recorded?.denied ?? []) reportDenied(each);
    const failure = new SandboxError('prepare', 'supervisor_lost', `${supervisorDied}; see the worker's log`);
    prepared.reject(failure);
    started.reject(failure);
    ended.resolve(recorded?.exit ?? lostExit);
    end.resolve();
  };

  lines.handle({
    message: receive,
    closed: () => {
      isOpen = false;
      if (!isOver) void lose();
    },
  });

  return {
    id: traces.id,
    get workspace() {
      return workspace;
    },
    isAlive: () => isOpen,
    gone: end.promise,
    prepare(preparation, adoptSeconds) {
      lines.send({ type: 'prepare', folder, preparation, adoptSeconds });
      return prepared.promise;
    },
    async spawn(launch) {
      isStarted = true;
      lines.send({ type: 'start', launch });
      await started.promise;
    },
    async openEgress({ order, report }) {
      onDenied(report);
      lines.send({ type: 'open_egress', egress: order });
    },
    async openSystem(system) {
      lines.send({ type: 'open_system', system });
    },
    onDenied,
    ended: ended.promise,
    rest(isResting, isFrozen = false) {
      if (!isOver) lines.send({ type: 'rest', isResting, isFrozen });
    },
    kill(how) {
      if (!isOver) lines.send({ type: 'kill', how });
    },
    async dispose() {
      if (!isOver) lines.send({ type: 'dispose' });
      // Waits for the report about the end, because the supervisor sends it only when no part of the sandbox is left.
      await Promise.race(isStarted ? [ended.promise, end.promise] : [end.promise]);
    },
    letGo() {
      isOver = true;
      lines.close();
    },
  };
}

const supervisorDied = 'the supervisor of the sandbox has died';

/** Ends a supervisor whose connection is lost. Returns how it recorded the end of the sandbox; if it did not, removes what is left. */
async function endLost({ process, folder, traces, log, id }: Supervisor): Promise<ReturnType<typeof readEnd>> {
  // Waits a second, because the supervisor may be about to end. Then kills the supervisor, because it may hang.
  for (let wait = 0; wait < 1000 && stateOf(process) === 'alive'; wait += 10) await sleep(10);
  while (stateOf(process) === 'alive') {
    killProcesses([process.pid]);
    await sleep(10);
  }
  const recorded = readEnd(folder);
  if (recorded === undefined) {
    const logEnd = lastLines(logOf(traces.stateRoot, id));
    log.warn({ sandbox: traces.id, ...(logEnd === '' ? {} : { log_end: logEnd }) }, supervisorDied);
    await removeRemains(traces, log);
  }
  return recorded;
}

const lostExit: SandboxExit = {
  exitCode: 137,
  outOfMemory: false,
  outputTail: '',
  verdict: {
    reason: 'supervisor_lost',
    message:
      'The process that supervised the sandbox was killed, and all its sandboxes ended with it. Look for the cause in the log of the machine, such as a lack of memory, and start the run again.',
  },
};

function lastLines(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim().slice(-2000);
  } catch {
    return '';
  }
}

/**
 * Ends and removes the remains of a sandbox whose supervisor died. Resolves only when it is certain that every process has ended.
 * Never rejects. If a part cannot be removed, this is logged, and the next worker removes the part when it starts.
 */
async function removeRemains(
  { id, stateRoot, label, variable, cgroups, container }: SandboxTraces,
  log: SlowLog,
): Promise<void> {
  const onSlow = logSlow(log, { sandbox: id });
  const failed = (error: Error) =>
    log.warn(
      { sandbox: id, error: error.message },
      'a sandbox could not be removed completely; the next start tries again',
    );
  const removeGroup = async (): Promise<void> => {
    if (cgroups !== undefined) await (await openCgroup(cgroups, id)).remove(onSlow);
  };
  // Ends the processes and removes the cgroup at the same time, because a frozen process can end only when the removal of its cgroup
  // thaws it.
  await Promise.all([endMarked({ labels: [label], variable }, onSlow), removeGroup().catch(failed)]);
  if (container !== undefined) await removeSandbox(openEngine(container.engine), container.name).catch(failed);
  await removeFolders(stateRoot, id).catch(failed);
}
