/**
 * Runs the relays and proxies of the sandboxes of a process on a thread of their own. A sandbox can keep this thread busy, but not the event
 * loop of the process, which has to end sandboxes and prepare new ones.
 */
import { Worker } from 'node:worker_threads';
import type { DeniedConnections } from '@runyard/contract/egress/denied';
import type { EgressOrder } from '../egress/egress.ts';
import type { SandboxMemory } from '../relay/memory-answers.ts';
import type { AskService, ServiceState } from '../relay/service-answers.ts';
import type { Relay } from '../relay/socket-server.ts';

/** The settings with which the thread opens the relay of a sandbox. */
export interface RelayOrder {
  readonly socketPath: string;
  /** The only user who may connect; absent: the user of this process. */
  readonly uid?: number | undefined;
  /** URL of the service without `/api/v1`. */
  readonly serviceRoot: string;
  /** Socket of the worker's cache. If it is absent, agents store nothing for later runs. */
  readonly cacheSocket?: string | undefined;
  /** Id of the sandbox, if the worker can copy its workspace and home. */
  readonly sandbox?: string | undefined;
  /** True if the sandbox has services from container images. */
  readonly hasServices?: boolean;
}

/** The settings with which the thread opens the proxy of a sandbox. */
export interface ProxyOrder extends EgressOrder {
  readonly socketPath: string;
  readonly uid?: number | undefined;
}

/** A request to the thread. The thread answers each request with its number. `end_proxy` reports the last denied connections. */
export type ThreadRequest = { readonly number: number } & (
  | { readonly type: 'open_relay'; readonly id: number; readonly order: RelayOrder }
  | { readonly type: 'run_token'; readonly id: number; readonly token: string }
  | { readonly type: 'close_relay' | 'end_proxy' | 'close_proxy'; readonly id: number }
  | { readonly type: 'open_proxy'; readonly id: number; readonly order: ProxyOrder }
  | { readonly type: 'answer'; readonly answer: SandboxMemory | ServiceState | undefined }
);

/** A question of a sandbox that only the process can answer. */
export type SandboxQuestion =
  | { readonly about: 'memory' }
  | { readonly about: 'service'; readonly name: string; readonly isStart: boolean };

/** A message of the thread. The answer to a `question` is a request of type `answer` with the same number. */
export type ThreadMessage =
  | { readonly type: 'done'; readonly number: number; readonly problem?: string }
  | { readonly type: 'question'; readonly id: number; readonly number: number; readonly question: SandboxQuestion }
  | { readonly type: 'denied'; readonly id: number; readonly denied: DeniedConnections };

/** The relay of one sandbox. */
export interface SandboxRelay extends Relay {
  /** Sets the token of the sandbox's run. Before that, the relay gives no access to the cache. */
  setRunToken?(token: string): void;
}

/** The proxy of one sandbox. */
export interface SandboxProxy extends Relay {
  /** Reports the counts of denied connections. */
  end(): Promise<void>;
}

export interface RelayThread {
  /** `service` answers questions about services from container images. */
  openRelay(order: RelayOrder, memory: () => Promise<SandboxMemory>, service?: AskService): Promise<SandboxRelay>;
  openProxy(order: ProxyOrder, report: (denied: DeniedConnections) => void): Promise<SandboxProxy>;
  close(): Promise<void>;
}

/** Data by which the supervisor program knows that it is started as this thread. */
export const relayThreadData = 'relays';

/** Longest memory of the thread, MB. A sandbox cannot make the process use more. */
const mostMemoryMb = 256;

/** Longest time to wait until the thread has closed a socket. */
const longestCloseMs = 5000;

type Without<T> = T extends unknown ? Omit<T, 'number'> : never;

/** Starts the thread. `entry` is the bundled supervisor program. If the thread fails, the process fails, like a supervisor that crashes. */
export function startRelayThread(entry: string): RelayThread {
  const thread = new Worker(entry, {
    workerData: relayThreadData,
    resourceLimits: { maxOldGenerationSizeMb: mostMemoryMb, maxYoungGenerationSizeMb: 16 },
  });
  let isClosing = false;
  thread.on('error', (error) => {
    throw error;
  });
  thread.on('exit', (code) => {
    if (!isClosing) throw new Error(`the thread of the relays has ended with code ${code}`);
  });
  thread.unref();
  const waiting = new Map<number, { resolve: () => void; reject: (error: Error) => void }>();
  const answerers = new Map<number, (question: SandboxQuestion) => Promise<SandboxMemory | ServiceState | undefined>>();
  const reports = new Map<number, (denied: DeniedConnections) => void>();
  let last = 0;

  const post = (request: ThreadRequest): void => thread.postMessage(request);
  const ask = (request: Without<ThreadRequest>): Promise<void> => {
    last += 1;
    const number = last;
    // While a request waits, the process must not end.
    if (waiting.size === 0) thread.ref();
    return new Promise<void>((resolve, reject) => {
      waiting.set(number, { resolve, reject });
      post({ ...request, number } as ThreadRequest);
    });
  };
  /** Like `ask`, but resolves after some time in any case, because the end of a sandbox must not wait for a thread that is busy. */
  const askToClose = async (request: Without<ThreadRequest>): Promise<void> => {
    let late: NodeJS.Timeout | undefined;
    const tooLate = new Promise<void>((resolve) => {
      late = setTimeout(resolve, longestCloseMs);
    });
    await Promise.race([ask(request), tooLate]);
    clearTimeout(late);
  };

  thread.on('message', (message: ThreadMessage) => {
    if (message.type === 'denied') return reports.get(message.id)?.(message.denied);
    if (message.type === 'question') {
      const { number } = message;
      const reply = (answer?: SandboxMemory | ServiceState): void => post({ type: 'answer', number, answer });
      (answerers.get(message.id)?.(message.question) ?? Promise.resolve(undefined)).then(reply, () => reply());
      return;
    }
    const asked = waiting.get(message.number);
    waiting.delete(message.number);
    if (waiting.size === 0) thread.unref();
    if (message.problem === undefined) asked?.resolve();
    else asked?.reject(new Error(message.problem));
  });

  return {
    async openRelay(order, memory, service) {
      last += 1;
      const id = last;
      answerers.set(id, async (question) =>
        question.about === 'memory' ? await memory() : await service?.(question.name, question.isStart),
      );
      await ask({ type: 'open_relay', id, order: { ...order, hasServices: service !== undefined } });
      return {
        setRunToken: (token) => void ask({ type: 'run_token', id, token }),
        async close() {
          await askToClose({ type: 'close_relay', id });
          answerers.delete(id);
        },
      };
    },
    async openProxy(order, report) {
      last += 1;
      const id = last;
      reports.set(id, report);
      await ask({ type: 'open_proxy', id, order });
      return {
        end: () => askToClose({ type: 'end_proxy', id }),
        async close() {
          await askToClose({ type: 'close_proxy', id });
          reports.delete(id);
        },
      };
    },
    async close() {
      isClosing = true;
      await thread.terminate();
    },
  };
}
