import { Readable } from 'node:stream';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { findPreset } from '@runyard/contract/agent/harness-presets/presets';
import { maxMemoryBytes } from '@runyard/contract/limits';
import type { ArtifactRequest, ArtifactResult } from '../artifacts/report.ts';
import type { GrantedSecrets } from '../granted-secrets/granted-secrets.ts';
import type { HandoffResult } from '../handoff/handoff-files.ts';
import type { Reporter } from '../reporting/reporter.ts';
import type { ServiceClient } from '../service/client.ts';
import { workingFolder } from '../workspace/working-folder.ts';
import type { Driver } from './driver.ts';
import type { Forwarder } from './forwarder/forwarder.ts';
import { type HarnessOptions, startHarness } from './start-harness.ts';
import { turnCheck } from './turn-check.ts';

export interface ExecutionHarnessOptions
  extends Omit<
    HarnessOptions,
    | 'task'
    | 'connection'
    | 'ready'
    | 'saturated'
    | 'tree'
    | 'memory'
    | 'remember'
    | 'folder'
    | 'reportArtifact'
    | 'handoff'
    | 'redact'
    | 'kept'
    | 'forwarder'
    | 'turnCheck'
  > {
  client: ServiceClient;
  secrets: GrantedSecrets;
  reporter: Reporter;
  treeOf: (task: AgentTask) => HarnessOptions['tree'];
  /** `reportArtifact` and `handoff` accept paths relative to the folder `cwd`. */
  reportArtifact: (request: ArtifactRequest, cwd: string) => Promise<ArtifactResult>;
  handoff: (paths: readonly string[], cwd: string) => Promise<HandoffResult>;
  /** Emits a notice of the current turn. */
  notice: (name: string, data: unknown) => void;
  /** Returns the number of the current turn. */
  turn: () => number;
  /** Aborts when the run must stop. */
  stop: AbortSignal;
  /** Aborts when the agent must not send reports any more. */
  reporting: AbortSignal;
}

interface StartedHarness {
  readonly driver: Driver;
  /** Present if the harness had exited and this call restarted it. */
  readonly restarted?: {
    /** How the earlier process of the harness ended. */
    readonly reason: string;
    /** The session of the earlier process, if another process can load it. */
    readonly session: string | undefined;
  };
}

/**
 * The harness of an execution. The first turn that needs the harness starts it. The same harness runs all turns. If the harness exits,
 * the next turn starts it again.
 */
export interface ExecutionHarness {
  /** Undefined before the first start. */
  readonly driver: Driver | undefined;
  /** Returns the driver of the harness; starts the harness if it does not run. */
  start(task: AgentTask): Promise<StartedHarness>;
}

/** Time limit for uploading the memory of the harness. After a stop, the time is shorter. */
const memoryTimeoutMs = 30_000;
const memoryTimeoutAfterStopMs = 1_000;

/** Maximum number of refused model requests that the conversation shows, because a command may repeat a refused request without end. */
const maxRefusalsShown = 20;

/** The forwarder of an execution. Its module is loaded when the first harness starts. */
function deferredForwarder(client: ServiceClient, notice: (name: string, data: unknown) => void) {
  let forwarder: Forwarder | undefined;
  let starting: Promise<Forwarder> | undefined;
  let refusals = 0;

  /** Starts the forwarder. It runs until the end of the execution, so that a restarted harness finds it at the same address. */
  async function openForwarder(type: string): Promise<Forwarder> {
    const { startForwarder } = await import('./forwarder/forwarder.ts');
    const sideModels = findPreset(type)?.sideModels ?? [];
    forwarder = await startForwarder({
      connection: client.connection,
      isExpected: ({ message }) => sideModels.some((model) => message.includes(JSON.stringify(model))),
      onRefused: (refusal) => {
        refusals += 1;
        if (refusals > maxRefusalsShown) return;
        process.stderr.write(`agent: the model gateway answered ${refusal.status}: ${refusal.message}\n`);
        notice('model_request_refused', refusal);
      },
      onDenied: (host) => notice('connection_denied', { host }),
    });
    return forwarder;
  }

  return {
    current: () => forwarder,
    start: (type: string): Promise<Forwarder> => {
      // Forget a failed start, so that the next start of the harness tries again.
      starting ??= openForwarder(type).catch((error: unknown) => {
        starting = undefined;
        throw error;
      });
      return starting;
    },
  };
}

/**
 * Saves the memory of the harness. If the upload fails, a later execution gets only the conversation that the service recorded, and
 * not the harness's own memory.
 */
async function saveMemory(
  { client, secrets, turn, stop, reporting }: ExecutionHarnessOptions,
  memory: string,
  requestId?: string,
): Promise<void> {
  const bytes = Buffer.from(secrets.redact(memory));
  const ofRequest = requestId === undefined ? '' : `&request_id=${encodeURIComponent(requestId)}`;
  const timeoutMs = stop.aborted ? memoryTimeoutAfterStopMs : memoryTimeoutMs;
  const signal = AbortSignal.any([reporting, AbortSignal.timeout(timeoutMs)]);
  await client
    .upload(
      `/api/v1/harness-support/memory?turn=${turn()}${ofRequest}`,
      () => Readable.from([bytes]),
      bytes.length,
      'application/octet-stream',
      { signal },
    )
    .catch((error: unknown) => process.stderr.write(`agent: the memory was not saved: ${String(error)}\n`));
}

/** Returns the outputs that are kept whole. The module is loaded only if the team keeps outputs. */
async function keptOutputsOf(
  { max_output_file_bytes: maxBytes = 0 }: AgentTask,
  { client, notice, stop }: ExecutionHarnessOptions,
): Promise<HarnessOptions['kept']> {
  if (maxBytes === 0) return undefined;
  const { keptOutputs } = await import('../commands/kept-output.ts');
  const onNotKept = (reason: string) => notice('output_not_kept', { reason });
  return keptOutputs({ client, maxBytes, onNotKept, signal: stop });
}

export function executionHarness(options: ExecutionHarnessOptions): ExecutionHarness {
  const { client, reporter, stop } = options;
  let driver: Driver | undefined;
  let starting: Promise<Driver> | undefined;
  /** The last session of the harness that another process can load. */
  let session: string | undefined;

  let hasTurn = false;
  const early: [name: string, data: unknown][] = [];

  /** Emits a notice. A notice that comes before the first turn is emitted when this turn begins. */
  function notice(name: string, data: unknown): void {
    if (hasTurn) options.notice(name, data);
    else early.push([name, data]);
  }
  const forwarders = deferredForwarder(client, notice);
  const check = turnCheck(client.connection, forwarders.current, (memory) => notice('memory_limit_reached', memory));

  async function begin(task: AgentTask): Promise<Driver> {
    const { conversation } = task;
    const memory = conversation?.kind === 'memory' ? await client.download(conversation.path, maxMemoryBytes) : null;
    const folder = workingFolder(options.workspace, task);
    driver = await startHarness({
      ...options,
      env: { ...options.env, ...options.secrets.variablesOf(task) },
      redact: options.secrets.redact,
      task,
      folder,
      kept: await keptOutputsOf(task, options),
      reportArtifact: (request) => options.reportArtifact(request, folder),
      handoff: (paths) => options.handoff(paths, folder),
      connection: client.connection,
      forwarder: () => forwarders.start(task.harness.type),
      turnCheck: {
        ...check,
        begin: async () => {
          hasTurn = true;
          for (const [name, data] of early.splice(0)) options.notice(name, data);
          await check.begin();
        },
      },
      ready: () => reporter.ready(),
      saturated: () => reporter.saturated,
      tree: options.treeOf(task),
      memory: memory?.toString(),
      remember: (memory, requestId) => saveMemory(options, memory, requestId),
    });
    if (stop.aborted) driver.cancel();
    return driver;
  }

  return {
    get driver() {
      return driver;
    },
    async start(task) {
      const reason = driver === undefined || driver.isAlive ? undefined : (await driver.exited).description;
      session = driver?.loadableSession ?? session;
      if (reason !== undefined) starting = undefined;
      starting ??= begin(task).catch((error: unknown) => {
        starting = undefined;
        throw error;
      });
      const started = await starting;
      return reason === undefined ? { driver: started } : { driver: started, restarted: { reason, session } };
    },
  };
}
