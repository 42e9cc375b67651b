import { setTimeout as sleep } from 'node:timers/promises';
import {
  ServiceMessage,
  type WorkerHello,
  type WorkerMessage,
  type WorkerStatus,
} from '@runyard/contract/workers/worker-protocol';
import { backoffMs } from '@runyard/system/backoff';
import type { Logger } from 'pino';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { isKeyText } from './api-key.ts';
import { dial } from './dial.ts';
import type { KeptMessage, Outbox } from './outbox.ts';
import { refusal } from './refusal.ts';

/** The members of an assignment that the worker repeats when it rejects the assignment. */
const NamedAssignment = z.object({
  type: z.literal('task_assignment'),
  data: z.object({ task_id: z.string(), execution_id: z.string().optional().catch(undefined) }),
});

/**
 * Returns the rejection of an assignment that this worker cannot parse. With it, the service gives the run to another worker at once
 * and not only after the time-out of the assignment. Returns `undefined` if the message is not an assignment or has no task id.
 */
function rejectionOf(message: unknown, issues: readonly string[]): WorkerMessage | undefined {
  const parsed = NamedAssignment.safeParse(message);
  if (!parsed.success) return undefined;
  const { task_id, execution_id } = parsed.data.data;
  return {
    type: 'task_rejected',
    data: {
      task_id,
      reason: `the assignment is not understood (${issues.join('; ')}): use a worker of the service's version`,
      ...(execution_id === undefined ? {} : { execution_id }),
    },
  };
}

const statusEveryMs = 60_000;
/** Pause after a refusal, because an immediate retry would be refused again. */
const refusedPauseMs = 10_000;
/** If a connection lasted longer than this, the next pause is `firstMs` again. */
const settledMs = 2000;

/** Pauses between attempts to connect. `backoffMs` changes them at random, so that not all workers reconnect at the same time. */
const reconnectBackoff = { firstMs: 100, longestMs: 5_000 };

/** A message of the service about executions. */
export type WorkMessage = Exclude<ServiceMessage, { type: 'worker_welcome' | 'messages_applied' }>;

export interface ConnectionOptions {
  /** URL of the service without `/api/v1`. */
  readonly serviceRoot: string;
  readonly workerName: string;
  /** Returns the key; `undefined` if there is no key yet. */
  readonly readKey: () => Promise<string | undefined>;
  readonly keySource: string;
  readonly outbox: Outbox;
  /** First message of each connection. */
  readonly hello: () => WorkerHello;
  /**
   * Returns the status message, which is sent after the hello and once a minute. Returns undefined if there is nothing to report at this
   * time.
   */
  readonly status: () => WorkerStatus | undefined;
  /** Called when the service issued a token to this process. */
  readonly onToken: (token: string) => void;
  readonly onMessage: (message: WorkMessage) => void;
  /** Called if the service refuses the key and has never accepted a connection of this process. In this case, retries do not help. */
  readonly onRefused: () => void;
  readonly log: Logger;
}

export interface Connection {
  /** Sends the message now or on a later connection. The message is kept until the service confirms it. */
  send(message: WorkerMessage): void;
  /** Sends the hello again if a connection is open. */
  sayHello(): void;
  /** Sends the status if a connection is open. */
  sayStatus(): void;
  /** True while a connection is open. */
  readonly isOpen: () => boolean;
  /** Ends the connection and does not open it again. */
  close(): Promise<void>;
}

type Attempt = 'lost' | 'refused' | 'no-key';

/** Keeps a WebSocket to the service open until `close`. */
export function connect(options: ConnectionOptions): Connection {
  const { log, outbox } = options;
  const sayStatus = (): void => {
    const status = options.status();
    if (status !== undefined && socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(status));
  };
  const url = `${options.serviceRoot.replace(/^http/, 'ws')}/api/v1/selfhosted/worker/ws?worker_id=${encodeURIComponent(options.workerName)}`;
  const stop = new AbortController();
  let socket: WebSocket | undefined;
  let wasAccepted = false;
  let lastComplaint = '';

  /** Logs a warning once for each cause, and not again for each attempt with the same cause. */
  const complain = (message: string, fields: object = {}): void => {
    const level = message === lastComplaint ? 'debug' : 'warn';
    lastComplaint = message;
    log[level](fields, message);
  };

  // Sends a message that the outbox keeps until the service confirms its number.
  const transmit = (kept: KeptMessage): void => {
    socket?.send(JSON.stringify({ ...kept.message, seq: kept.number }));
  };

  const send = (message: WorkerMessage): void => {
    const entry = outbox.keep(message);
    if (socket?.readyState === WebSocket.OPEN) transmit(entry);
  };

  const receive = (data: string): void => {
    const json = parseJson(data);
    const parsed = ServiceMessage.safeParse(json);
    if (!parsed.success) {
      const issues = parsed.error.issues.slice(0, 3).map((issue) => `${issue.path.join('.')}: ${issue.message}`);
      log.warn({ issues }, 'the service sent a message that this worker does not understand');
      const rejection = rejectionOf(json, issues);
      if (rejection !== undefined) send(rejection);
      return;
    }
    const message = parsed.data;
    if (message.type === 'worker_welcome') options.onToken(message.data.token);
    else if (message.type === 'messages_applied') outbox.confirm(message.data.seq);
    else options.onMessage(message);
  };

  const onOpen = (opened: WebSocket): void => {
    wasAccepted = true;
    lastComplaint = '';
    socket = opened;
    log.info(
      { connection: 'open', service: options.serviceRoot, worker: options.workerName },
      'connected to the service',
    );
    opened.send(JSON.stringify(options.hello()));
    sayStatus();
    for (const entry of outbox.kept()) transmit(entry);
  };

  const attempt = async (): Promise<Attempt> => {
    const key = await options.readKey();
    // `close` may have been called during `readKey`, when no abort listener existed yet.
    if (stop.signal.aborted) return 'lost';
    if (key === undefined) {
      complain(
        `there is no key yet: waiting for ${options.keySource}; set RUNYARD_API_KEY if the service runs elsewhere`,
      );
      return 'no-key';
    }
    if (!isKeyText(key)) {
      complain(
        `the key of ${options.keySource} holds a line break, a space or another character that no key has: give the worker the key alone, on one line`,
      );
      return 'refused';
    }
    const statusTimer = setInterval(sayStatus, statusEveryMs);
    const outcome = await dial({ url, key, stop: stop.signal, onOpen, onMessage: receive }).finally(() => {
      clearInterval(statusTimer);
      socket = undefined;
    });
    if (outcome.kind === 'refused') {
      const { status, detail } = outcome;
      complain(refusal(status, options.keySource, options.workerName, detail), { status });
      return 'refused';
    }
    if (outcome.why !== undefined)
      complain(`no connection to ${options.serviceRoot}: ${outcome.why}; trying again`, { connection: 'none' });
    return 'lost';
  };

  const keepConnected = async (): Promise<void> => {
    for (let tries = 0; !stop.signal.aborted; tries++) {
      const began = performance.now();
      const result = await attempt().catch((error: Error): Attempt => {
        complain(`no connection to ${options.serviceRoot}: ${error.message}; trying again`, { connection: 'none' });
        return 'lost';
      });
      if (stop.signal.aborted) return;
      if (result === 'refused' && !wasAccepted) options.onRefused();
      if (performance.now() - began > settledMs) tries = 0;
      const pauseMs = result === 'refused' ? refusedPauseMs : backoffMs(reconnectBackoff, tries + 1);
      // If `close` is called, the pause ends early and rejects.
      await sleep(pauseMs, undefined, { signal: stop.signal }).catch(() => {});
    }
  };
  const ended = keepConnected();

  return {
    send,
    sayHello() {
      if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(options.hello()));
    },
    sayStatus,
    isOpen: () => socket?.readyState === WebSocket.OPEN,
    async close() {
      const current = socket;
      stop.abort();
      // Cuts the connection after a second, if the service does not answer the close frame.
      const impatient = setTimeout(() => current?.terminate(), 1000);
      await ended;
      clearTimeout(impatient);
    },
  };
}

/** Returns the parsed text, or `undefined` if the text is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
