import { existsSync } from 'node:fs';
import path from 'node:path';
import type { DeniedConnections } from '@runyard/contract/egress/denied';
import type { EgressOrder } from '../egress/egress.ts';
import type { RelayThread } from '../relay-thread/relay-thread.ts';
import { agentContents } from '../sandboxes/bubblewrap/contents.ts';
import type { BubblewrapPreparation } from '../sandboxes/bubblewrap/preparation.ts';
import { prepareSandbox } from '../sandboxes/bubblewrap/prepare.ts';
import type { RawSandbox } from '../sandboxes/bubblewrap/raw-sandbox.ts';
import type { ContainerPreparation } from '../sandboxes/docker/preparation.ts';
import { prepareContainer } from '../sandboxes/docker/prepare.ts';
import { type AgentLaunch, type Sandbox, SandboxError, type SandboxExit } from '../sandboxes/sandbox.ts';
import type { Channel } from '../supervisor-client/channels.ts';
import { filesOf, writeDurably } from '../supervisor-client/files.ts';
import type { Order, Report } from '../supervisor-client/messages.ts';

/** Time between two checks whether the sandbox's folder still exists. A person who removes the data folder also removes this folder. */
const folderCheckMs = 1000;

/** The data from which a backend prepares one sandbox. */
type Preparation = BubblewrapPreparation | ContainerPreparation;

/** A sandbox of any backend. */
type PreparedSandbox = Sandbox & Pick<RawSandbox, 'openEgress'> & Partial<Pick<RawSandbox, 'openSystem'>>;

/** An order of a worker. */
export type SandboxOrder = Order<Preparation>;

/** The connection to a worker. */
export type WorkerLines = Channel<Report, SandboxOrder>;

/** Longest time to wait until the worker has received the last report. */
const lastReportMs = 1000;

/** The supervision of one sandbox. */
export interface Supervision {
  /**
   * Accepts orders from a worker. `adoptSeconds`: how long the sandbox may run without a worker when this worker has ended. `first`:
   * an order that arrived before this call.
   */
  serve(lines: WorkerLines, adoptSeconds?: number, first?: SandboxOrder): void;
  /** Returns true if an agent was started in the sandbox, the sandbox has not ended, and no worker is connected. */
  readonly canBeAdopted: () => boolean;
}

export interface SupervisionOptions {
  /** Listens for workers that adopt the sandbox. Returns a function that stops listening. */
  readonly listen: (supervision: Supervision) => Promise<() => void>;
  /** Runs the relays and proxies of all sandboxes of this process. */
  readonly relays: RelayThread;
  /** Called when no part of the sandbox is left, and the worker was notified or has ended. May be called twice. */
  readonly onOver: () => void;
}

/** Supervises the sandbox of `folder`. */
export function holdSandbox(folder: string, { listen, relays, onOver }: SupervisionOptions): Supervision {
  const id = path.basename(folder);
  const files = filesOf(folder);
  let worker: WorkerLines | undefined;
  let sandbox: PreparedSandbox | undefined;
  let egressOpened: Promise<void> | undefined;
  let systemOpened: Promise<void> | undefined;
  const denied: DeniedConnections[] = [];
  let isPreparing = false;
  let started = false;
  let isDisposing = false;
  let ended: SandboxExit | undefined;
  let adoptSeconds = 0;
  /** Why this process itself ended the sandbox. Undefined if this process did not end the sandbox. */
  let verdict: SandboxExit['verdict'];
  let waiting: NodeJS.Timeout | undefined;
  let stopListening = (): void => {};

  const warn = (fields: object, message: string): void => {
    process.stderr.write(`${JSON.stringify({ sandbox: id, ...fields, message })}\n`);
    worker?.send({ type: 'warning', fields, message });
  };

  /** Ends the supervision as soon as the worker has received the last report, but after one second at the latest. */
  const leave = (): void => {
    clearInterval(folderCheck);
    clearTimeout(waiting);
    stopListening();
    if (worker === undefined) {
      onOver();
      return;
    }
    const late = setTimeout(onOver, lastReportMs);
    worker.close(() => {
      clearTimeout(late);
      onOver();
    });
  };

  const prepare = async (preparation: Preparation): Promise<void> => {
    const { runtime, serviceRoot } = preparation;
    isPreparing = true;
    try {
      stopListening = await listen(supervision);
      const contents = agentContents(runtime, relays, preparation);
      if ('backend' in preparation) {
        sandbox = await prepareContainer({ ...preparation.ground, log: { warn } }, contents, preparation);
      } else {
        const prepared = await prepareSandbox({ ...preparation.ground, log: { warn } }, contents, preparation.id);
        sandbox = prepared;
        if (preparation.isWarm) await startWaiting(prepared, serviceRoot);
      }
      isPreparing = false;
      worker?.send({ type: 'prepared', workspace: sandbox.workspace });
      if (worker === undefined) await dispose();
    } catch (error) {
      const { message } = error as Error;
      const known =
        error instanceof SandboxError ? error : { phase: 'prepare' as const, reason: 'sandbox_not_prepared' };
      isDisposing = true;
      await sandbox?.dispose();
      worker?.send({ type: 'not_prepared', phase: known.phase, reason: known.reason, message });
      leave();
    }
  };

  /** Starts an agent that waits for a run. If the agent ends before a run arrives, ends the sandbox too. */
  const startWaiting = async (prepared: RawSandbox, serviceRoot: string): Promise<void> => {
    void prepared.ended.then(({ exitCode, outputTail }) => {
      if (started || isDisposing) return;
      warn({ exit_code: exitCode, output: outputTail.slice(-2000) }, 'an agent ended while it waited for a run');
      if (!isPreparing) void dispose();
    });
    await prepared.startWaiting(serviceRoot);
  };

  /** Removes a sandbox in which no run was started, or whose agent still waits. */
  const dispose = async (): Promise<void> => {
    if (isDisposing) return;
    isDisposing = true;
    await sandbox?.dispose();
    worker?.send({ type: 'disposed' });
    leave();
  };

  /** Waits until the sandbox has ended. Then removes the sandbox, writes a record of the end to the disk, and reports the end. */
  const watch = async (running: Sandbox): Promise<void> => {
    const exit = await running.ended;
    await running.dispose();
    ended = { ...exit, ...(exit.verdict === undefined && verdict !== undefined ? { verdict } : {}) };
    try {
      await writeDurably(files.end, { ...ended, denied });
    } catch (error) {
      warn({ error: (error as Error).message }, 'the end of a sandbox could not be written down');
    }
    // Sends the end only to a connected worker, because a later worker reads the end from the disk.
    worker?.send({ type: 'ended', exit: ended });
    leave();
  };

  const obey = (order: SandboxOrder): void => {
    switch (order.type) {
      case 'prepare':
        adoptSeconds = order.adoptSeconds;
        void prepare(order.preparation);
        return;
      case 'start':
        if (sandbox === undefined || started || isDisposing) return;
        started = true;
        void watch(sandbox);
        void start(sandbox, order.launch);
        return;
      case 'open_egress':
        egressOpened = openEgress(order.egress);
        egressOpened.catch(() => {});
        return;
      case 'open_system':
        systemOpened = sandbox?.openSystem?.(order.system);
        systemOpened?.catch(() => {});
        return;
      case 'rest':
        sandbox?.rest?.(order.isResting, order.isFrozen);
        return;
      case 'kill':
        sandbox?.kill(order.how);
        return;
      case 'dispose':
        if (started) sandbox?.kill('kill');
        else void dispose();
    }
  };

  const openEgress = async (order: EgressOrder): Promise<void> => {
    await sandbox?.openEgress({
      order,
      report(each) {
        denied.push(each);
        worker?.send({ type: 'denied', denied: each });
      },
    });
  };

  const start = async (prepared: PreparedSandbox, launch: AgentLaunch): Promise<void> => {
    try {
      await egressOpened;
      await systemOpened;
      await prepared.spawn(launch);
      worker?.send({ type: 'started' });
    } catch (error) {
      endAlone((error as Error).message, 'sandbox_not_prepared');
    }
  };

  const endAlone = (message: string, reason = 'worker_lost'): void => {
    verdict = { reason, message };
    if (started) sandbox?.kill('kill');
    else if (!isPreparing) void dispose();
  };

  const wait = (): void => {
    if (ended !== undefined) return;
    // During the preparation, only kills an agent that is starting. The function `prepare` disposes of the sandbox after its current step.
    if (!started && isPreparing) return void sandbox?.kill('kill');
    if (!started) return void dispose();
    const gaveUp = () =>
      endAlone(
        `The worker was away for more than ${adoptSeconds} s, so its sandbox was ended (RUNYARD_ADOPT_SECONDS). Look at the worker's log, and run it again.`,
      );
    waiting = setTimeout(gaveUp, adoptSeconds * 1000);
  };

  const folderCheck = setInterval(() => {
    if (existsSync(folder) || verdict !== undefined) return;
    endAlone('The data folder of the worker was removed, so its sandbox was ended.');
  }, folderCheckMs);
  folderCheck.unref();

  const supervision: Supervision = {
    canBeAdopted: () => started && !isDisposing && ended === undefined && worker === undefined,
    serve(lines, seconds, first) {
      clearTimeout(waiting);
      adoptSeconds = seconds ?? adoptSeconds;
      worker = lines;
      if (seconds !== undefined) for (const each of denied) lines.send({ type: 'denied', denied: each });
      if (first !== undefined) obey(first);
      lines.handle({
        message: obey,
        closed() {
          worker = undefined;
          // Thaws the processes of the sandbox, because without a connected worker no order to thaw them could arrive.
          sandbox?.rest?.(false);
          wait();
        },
      });
    },
  };
  return supervision;
}
