import { existsSync } from 'node:fs';
import path from 'node:path';
import type { DeniedConnections } from '@runyard/contract/egress/denied';
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

/** The state of a supervision. */
interface Held extends Pick<SupervisionOptions, 'relays' | 'onOver'> {
  readonly id: string;
  readonly folder: string;
  /** Begins to listen for workers. Returns a function that stops listening. */
  readonly listen: () => Promise<() => void>;
  readonly denied: DeniedConnections[];
  adoptSeconds: number;
  worker?: WorkerLines | undefined;
  sandbox?: PreparedSandbox;
  /** The parts that must be open in the sandbox before the agent starts. */
  egressOpened?: Promise<void>;
  systemOpened?: Promise<void> | undefined;
  isPreparing: boolean;
  hasStarted: boolean;
  isDisposing: boolean;
  ended?: SandboxExit;
  /** Why this process itself ended the sandbox. Undefined if this process did not end the sandbox. */
  verdict?: SandboxExit['verdict'];
  folderCheck?: NodeJS.Timeout;
  waiting?: NodeJS.Timeout;
  stopListening?: () => void;
}

/** Supervises the sandbox of `folder`. */
export function holdSandbox(folder: string, { listen, relays, onOver }: SupervisionOptions): Supervision {
  const held: Held = {
    id: path.basename(folder),
    folder,
    listen: () => listen(supervision),
    relays,
    onOver,
    denied: [],
    adoptSeconds: 0,
    isPreparing: false,
    hasStarted: false,
    isDisposing: false,
  };
  const supervision: Supervision = {
    canBeAdopted: () => held.hasStarted && !held.isDisposing && held.ended === undefined && held.worker === undefined,
    serve: (lines, adoptSeconds, first) => serve(held, lines, adoptSeconds, first),
  };
  held.folderCheck = setInterval(() => checkFolder(held), folderCheckMs).unref();
  return supervision;
}

/** Makes `lines` the worker of the sandbox. A worker that adopts the sandbox also gets the connections that were denied before. */
function serve(held: Held, lines: WorkerLines, adoptSeconds?: number, first?: SandboxOrder): void {
  clearTimeout(held.waiting);
  held.adoptSeconds = adoptSeconds ?? held.adoptSeconds;
  held.worker = lines;
  if (adoptSeconds !== undefined) for (const each of held.denied) lines.send({ type: 'denied', denied: each });
  if (first !== undefined) obey(held, first);
  lines.handle({
    message: (order) => obey(held, order),
    closed() {
      held.worker = undefined;
      // Thaws the processes of the sandbox, because without a connected worker no order to thaw them could arrive.
      held.sandbox?.rest?.(false);
      waitForWorker(held);
    },
  });
}

function obey(held: Held, order: SandboxOrder): void {
  const { sandbox } = held;
  switch (order.type) {
    case 'prepare':
      held.adoptSeconds = order.adoptSeconds;
      void prepare(held, order.preparation);
      return;
    case 'start':
      if (sandbox === undefined || held.hasStarted || held.isDisposing) return;
      held.hasStarted = true;
      void watch(held, sandbox);
      void start(held, sandbox, order.launch);
      return;
    case 'open_egress':
      held.egressOpened = openEgress(held, order.egress);
      held.egressOpened.catch(() => {});
      return;
    case 'open_system':
      held.systemOpened = sandbox?.openSystem?.(order.system);
      held.systemOpened?.catch(() => {});
      return;
    case 'rest':
      sandbox?.rest?.(order.isResting, order.isFrozen);
      return;
    case 'kill':
      sandbox?.kill(order.how);
      return;
    case 'dispose':
      if (held.hasStarted) sandbox?.kill('kill');
      else void dispose(held);
  }
}

async function prepare(held: Held, preparation: Preparation): Promise<void> {
  held.isPreparing = true;
  try {
    held.stopListening = await held.listen();
    const sandbox = await prepareWithBackend(held, preparation);
    held.isPreparing = false;
    held.worker?.send({ type: 'prepared', workspace: sandbox.workspace });
    if (held.worker === undefined) await dispose(held);
  } catch (error) {
    const { message } = error as Error;
    const known = error instanceof SandboxError ? error : { phase: 'prepare' as const, reason: 'sandbox_not_prepared' };
    held.isDisposing = true;
    await held.sandbox?.dispose();
    held.worker?.send({ type: 'not_prepared', phase: known.phase, reason: known.reason, message });
    leave(held);
  }
}

/** Prepares the sandbox. If the worker has asked for it, also starts an agent that waits for a run. */
async function prepareWithBackend(held: Held, preparation: Preparation): Promise<PreparedSandbox> {
  const log = { warn: (fields: object, message: string) => warn(held, fields, message) };
  const contents = agentContents(preparation.runtime, held.relays, preparation);
  if ('backend' in preparation) {
    held.sandbox = await prepareContainer({ ...preparation.ground, log }, contents, preparation);
    return held.sandbox;
  }
  const prepared = await prepareSandbox({ ...preparation.ground, log }, contents, preparation.id);
  held.sandbox = prepared;
  if (preparation.isWarm) await startWaiting(held, prepared, preparation.serviceRoot);
  return prepared;
}

/** Starts an agent that waits for a run. If the agent ends before a run arrives, ends the sandbox too. */
async function startWaiting(held: Held, prepared: RawSandbox, serviceRoot: string): Promise<void> {
  void prepared.ended.then(({ exitCode, outputTail }) => {
    if (held.hasStarted || held.isDisposing) return;
    warn(held, { exit_code: exitCode, output: outputTail.slice(-2000) }, 'an agent ended while it waited for a run');
    if (!held.isPreparing) void dispose(held);
  });
  await prepared.startWaiting(serviceRoot);
}

async function openEgress(held: Held, order: Extract<SandboxOrder, { type: 'open_egress' }>['egress']): Promise<void> {
  await held.sandbox?.openEgress({
    order,
    report(each) {
      held.denied.push(each);
      held.worker?.send({ type: 'denied', denied: each });
    },
  });
}

async function start(held: Held, sandbox: PreparedSandbox, launch: AgentLaunch): Promise<void> {
  try {
    await held.egressOpened;
    await held.systemOpened;
    await sandbox.spawn(launch);
    held.worker?.send({ type: 'started' });
  } catch (error) {
    endAlone(held, (error as Error).message, 'sandbox_not_prepared');
  }
}

/** Waits until the sandbox has ended. Then removes the sandbox, writes a record of the end to the disk, and reports the end. */
async function watch(held: Held, sandbox: PreparedSandbox): Promise<void> {
  const exit = await sandbox.ended;
  await sandbox.dispose();
  const { verdict = held.verdict, ...end } = exit;
  held.ended = { ...end, ...(verdict === undefined ? {} : { verdict }) };
  try {
    await writeDurably(filesOf(held.folder).end, { ...held.ended, denied: held.denied });
  } catch (error) {
    warn(held, { error: (error as Error).message }, 'the end of a sandbox could not be written down');
  }
  // Sends the end only to a connected worker, because a later worker reads the end from the disk.
  held.worker?.send({ type: 'ended', exit: held.ended });
  leave(held);
}

/** Ends the sandbox if no worker adopts it in time. */
function waitForWorker(held: Held): void {
  if (held.ended !== undefined) return;
  // During the preparation, only kills an agent that is starting. The function `prepare` disposes of the sandbox after its current step.
  if (!held.hasStarted && held.isPreparing) return void held.sandbox?.kill('kill');
  if (!held.hasStarted) return void dispose(held);
  const gaveUp = () =>
    endAlone(
      held,
      `The worker was away for more than ${held.adoptSeconds} s, so its sandbox was ended (RUNYARD_ADOPT_SECONDS). Look at the worker's log, and run it again.`,
    );
  held.waiting = setTimeout(gaveUp, held.adoptSeconds * 1000);
}

function checkFolder(held: Held): void {
  if (existsSync(held.folder) || held.verdict !== undefined) return;
  endAlone(held, 'The data folder of the worker was removed, so its sandbox was ended.');
}

/** Ends the sandbox without an order of a worker. */
function endAlone(held: Held, message: string, reason = 'worker_lost'): void {
  held.verdict = { reason, message };
  if (held.hasStarted) held.sandbox?.kill('kill');
  else if (!held.isPreparing) void dispose(held);
}

/** Removes a sandbox in which no run was started, or whose agent still waits. */
async function dispose(held: Held): Promise<void> {
  if (held.isDisposing) return;
  held.isDisposing = true;
  await held.sandbox?.dispose();
  held.worker?.send({ type: 'disposed' });
  leave(held);
}

/** Ends the supervision as soon as the worker has received the last report, but after one second at the latest. */
function leave({ folderCheck, waiting, stopListening, worker, onOver }: Held): void {
  clearInterval(folderCheck);
  clearTimeout(waiting);
  stopListening?.();
  if (worker === undefined) {
    onOver();
    return;
  }
  const late = setTimeout(onOver, lastReportMs);
  worker.close(() => {
    clearTimeout(late);
    onOver();
  });
}

function warn({ id, worker }: Held, fields: object, message: string): void {
  process.stderr.write(`${JSON.stringify({ sandbox: id, ...fields, message })}\n`);
  worker?.send({ type: 'warning', fields, message });
}
