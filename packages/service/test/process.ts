/** Test support: service processes with a worker endpoint, and workers that send raw messages over real sockets. */
import { randomUUIDv7 } from 'node:crypto';
import type { ServiceMessage } from '@runyard/contract/workers/worker-protocol';
import { expect, vi } from 'vitest';
import { WebSocket } from 'ws';
import { buildApp } from '../src/edges/http/app.ts';
import { authenticateWorker } from '../src/edges/http/server/authorize.ts';
import type { ServiceDeps } from '../src/edges/http/server/deps.ts';
import { openHub } from '../src/edges/workers/hub.ts';
import { serveWorkerSockets } from '../src/edges/workers/socket.ts';
import { trustProxies } from '../src/platform/serving/trusted-proxies.ts';
import { beatServiceInstance } from '../src/runs/executions/lease/heartbeat.ts';
import { openKeyDirectory } from '../src/team/access/keys/directory.ts';
import { openKeyWatch } from '../src/team/access/keys/watch.ts';
import { enterPool } from '../src/team/access/worker-pools/enter.ts';
import { domainsWithoutWorkers } from './service.ts';

/** One service process, without its background loops. */
export interface TestProcess {
  readonly baseUrl: string;
  /** Assigns waiting work. */
  dispatch(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Starts another service process on the database of `shared`. `checkKeysEveryMs`: how often the process checks the keys of connected
 * workers, even without a notice.
 */
export async function startTestProcess(shared: ServiceDeps, checkKeysEveryMs?: number): Promise<TestProcess> {
  const keys = await openKeyDirectory(shared.db, shared.log);
  const keyWatch = await openKeyWatch(shared.db, shared.log, checkKeysEveryMs);
  const serviceInstanceId = randomUUIDv7();
  const deps: ServiceDeps = { ...shared, keys, keyWatch, serviceInstanceId };
  const app = await buildApp(deps, domainsWithoutWorkers(deps));
  await beatServiceInstance(deps.executionDeps, serviceInstanceId);
  const hub = openHub(deps.executionDeps, { serviceInstanceId });
  const closeSockets = serveWorkerSockets(app.server, {
    hub,
    log: deps.log,
    authenticate: (authorization) => authenticateWorker(keys, authorization),
    keyWatch,
    trustedProxies: trustProxies(deps.settings.RUNYARD_TRUSTED_PROXIES),
    enterPool: (caller, name) => enterPool(deps.db, caller, name),
  });
  const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 });
  return {
    baseUrl,
    dispatch: () => hub.dispatch(),
    close: async () => {
      closeSockets();
      await hub.close();
      await app.close();
      keys.close();
      keyWatch.close();
    },
  };
}

/** The worker's end of a connection to the service. */
export interface RawWorker {
  /** The messages that the service sent, in order. */
  readonly received: ServiceMessage[];
  /** Returns when the connection was closed, as a time of `performance.now()`; null while it is open. */
  closedAt(): number | null;
  say(message: object): void;
  /** Waits until the service has handled all messages that this worker has sent. */
  roundTrip(): Promise<void>;
  close(): void;
}

const socketUrl = (baseUrl: string, name: string) =>
  `${baseUrl.replace('http', 'ws')}/api/v1/selfhosted/worker/ws?worker_id=${name}`;

/** Opens a socket as a worker does. Returns the HTTP status as a number if the service refuses it. */
export async function connectRawWorker(baseUrl: string, key: string, name: string): Promise<RawWorker | number> {
  const socket = new WebSocket(socketUrl(baseUrl, name), { headers: { authorization: `Bearer ${key}` } });
  const received: ServiceMessage[] = [];
  let closedAt: number | null = null;
  socket.on('message', (data) => received.push(JSON.parse(String(data))));
  socket.on('close', () => {
    closedAt = performance.now();
  });
  socket.on('error', () => undefined);
  const status = await new Promise<number>((resolve) => {
    socket.once('open', () => resolve(101));
    socket.once('unexpected-response', (_request, response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
  });
  if (status !== 101) {
    socket.terminate();
    return status;
  }
  let rounds = 0;
  const waiting = new Map<string, () => void>();
  socket.on('pong', (data) => waiting.get(String(data))?.());
  socket.on('close', () => {
    for (const resolve of waiting.values()) resolve();
  });
  return {
    received,
    closedAt: () => closedAt,
    say: (message) => socket.send(JSON.stringify(message)),
    roundTrip: async () => {
      rounds += 1;
      const text = String(rounds);
      const answered = new Promise<void>((resolve) => waiting.set(text, resolve));
      socket.ping(text);
      await answered;
      waiting.delete(text);
    },
    close: () => socket.terminate(),
  };
}

/** Opens a socket as a worker does. Throws if the service refuses it. */
export async function acceptedWorker(baseUrl: string, key: string, name: string): Promise<RawWorker> {
  const worker = await connectRawWorker(baseUrl, key, name);
  if (typeof worker === 'number') throw new Error(`the worker was refused with ${worker}`);
  return worker;
}

type DataOf = { [M in ServiceMessage as M['type']]: M['data'] };

/** Returns the data of all messages of one type that a worker received. */
export const receivedOf = <T extends keyof DataOf>({ received }: RawWorker, type: T): DataOf[T][] =>
  received.filter((message) => message.type === type).map(({ data }) => data as DataOf[T]);

/** Waits for the first assignment of a worker. */
export async function firstAssignment(worker: RawWorker) {
  await vi.waitFor(() => expect(receivedOf(worker, 'task_assignment')).not.toEqual([]), { timeout: 60_000 });
  const [assignment] = receivedOf(worker, 'task_assignment');
  if (!assignment) throw new Error('no assignment');
  return assignment;
}

/** Returns the hello message of a worker of this repository. */
export const rawHello = (more: object = {}): object => ({
  type: 'worker_hello',
  data: {
    worker_id: 'a',
    instance_id: 'instance-1',
    replaces: [],
    slots: 5,
    executions: [],
    sandbox: { backend: 'bubblewrap', features: [], missing: [] },
    draining: false,
    ...more,
  },
});

/**
 * Connects a worker and assigns a new run to it. `newRun` creates a run in the pool of the worker. `say` sends a message of the worker about
 * the run, and waits until the service has applied the message.
 */
export async function assignedRun(
  baseUrl: string,
  key: string,
  newRun: (body: Record<string, unknown>) => Promise<unknown>,
) {
  const worker = await acceptedWorker(baseUrl, key, 'box');
  worker.say(rawHello({ worker_id: 'box' }));
  await worker.roundTrip();
  await newRun({ config: { worker_host: 'box' } });
  const { task_id, execution_id, env_vars } = await firstAssignment(worker);
  let seq = 0;
  return {
    runId: task_id,
    runToken: env_vars?.RUNYARD_RUN_TOKEN ?? '',
    say: async (type: string, data: object) => {
      seq += 1;
      worker.say({ type, seq, data: { task_id, execution_id, ...data } });
      await vi.waitFor(() => expect(receivedOf(worker, 'messages_applied').at(-1)?.seq).toBe(seq), { timeout: 60_000 });
    },
    close: () => worker.close(),
  };
}
