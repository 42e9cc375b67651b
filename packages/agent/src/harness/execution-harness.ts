/** The harness of an execution: started when a turn first needs it, alive over all turns, and started again where it has died between them. */
import { Readable } from 'node:stream';
import type { AgentTask } from '@runyard/contract/agent-protocol';
import { maxMemoryBytes } from '@runyard/contract/limits';
import type { Reporter } from '../reporting/reporter.ts';
import type { ServiceClient } from '../service/client.ts';
import type { Driver } from './driver.ts';
import { type HarnessOptions, startHarness } from './start-harness.ts';

export interface ExecutionHarnessOptions
  extends Omit<
    HarnessOptions,
    'task' | 'connection' | 'emit' | 'ready' | 'saturated' | 'tree' | 'memory' | 'remember'
  > {
  client: ServiceClient;
  reporter: Reporter;
  emit: HarnessOptions['emit'];
  tree: (task: AgentTask) => HarnessOptions['tree'];
  /** Turn that is played. */
  turn: () => number;
  /** Aborts when the run stops. */
  stop: AbortSignal;
  /** Aborts when nothing may be reported any more. */
  reporting: AbortSignal;
}

/** A harness that lives. */
interface StartedHarness {
  readonly driver: Driver;
  /** Set where this call started it in place of one that had ended. */
  readonly restarted?: {
    /** How the earlier one ended. */
    readonly reason: string;
    /** Its session, where it could load it again. */
    readonly session: string | undefined;
  };
}

export interface ExecutionHarness {
  /** Absent before its start. */
  readonly driver: Driver | undefined;
  start(task: AgentTask): Promise<StartedHarness>;
}

export function executionHarness(options: ExecutionHarnessOptions): ExecutionHarness {
  const { client, reporter, stop, reporting } = options;
  let driver: Driver | undefined;
  let starting: Promise<Driver> | undefined;
  /** The last session that a process of the harness could load again. */
  let session: string | undefined;

  /** Losing it costs a later execution the harness's own view, not the conversation. */
  async function remember(memory: string, requestId?: string): Promise<void> {
    const bytes = Buffer.from(memory);
    const ofRequest = requestId === undefined ? '' : `&request_id=${encodeURIComponent(requestId)}`;
    const signal = AbortSignal.any([reporting, AbortSignal.timeout(stop.aborted ? 1_000 : 30_000)]);
    await client
      .upload(
        `/api/v1/harness-support/memory?turn=${options.turn()}${ofRequest}`,
        () => Readable.from([bytes]),
        bytes.length,
        'application/octet-stream',
        { signal },
      )
      .catch((error: unknown) => process.stderr.write(`agent: the memory was not kept: ${String(error)}\n`));
  }

  async function begin(task: AgentTask): Promise<Driver> {
    const { conversation } = task;
    const memory = conversation?.kind === 'memory' ? await client.download(conversation.path, maxMemoryBytes) : null;
    driver = await startHarness({
      ...options,
      task,
      connection: client.connection,
      ready: () => reporter.ready(),
      saturated: () => reporter.saturated,
      tree: options.tree(task),
      memory: memory?.toString(),
      remember,
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
