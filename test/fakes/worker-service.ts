import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ServiceMessage, type TaskAssignment, WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import { WebSocket, WebSocketServer } from 'ws';

/** The content of each type of message. */
type DataOf = { [M in WorkerMessage as M['type']]: M['data'] };

export interface FakeWorkerServiceOptions {
  readonly port?: number;
  /** The API key that the fake accepts. */
  readonly key?: string;
  /** Answers the HTTP requests that agents send through the worker's relay. */
  readonly onRequest?: (request: IncomingMessage, response: ServerResponse) => void;
}

/** A fake service for a worker: accepts the worker's WebSocket, records its messages, and sends the messages of a test. */
export interface FakeWorkerService {
  readonly url: string;
  readonly port: number;
  /** The messages of workers from all connections, in order. */
  readonly messages: WorkerMessage[];
  /** The HTTP requests that the fake received, as `METHOD target`. */
  readonly requests: string[];
  /** Returns the number of connections that were accepted so far. */
  readonly connectionCount: () => number;
  send(message: ServiceMessage): void;
  /** Sends the text unchanged as a frame. */
  sendText(text: string): void;
  /** With false, the fake receives messages and does not acknowledge them, like a service that cannot write. */
  acknowledge(does: boolean): void;
  /**
   * Resolves to the data of the first message of this type for which `matches` returns true. Default: the first message of this type.
   */
  waitFor<T extends keyof DataOf>(type: T, matches?: (data: DataOf[T]) => boolean): Promise<DataOf[T]>;
  /** Closes all worker connections without a close frame. */
  cutConnections(): void;
  /** Refuses all later connections with this HTTP status. If the status is undefined, accepts connections again. */
  refuseWith(status: number | undefined): void;
  close(): Promise<void>;
}

export async function startFakeWorkerService(options: FakeWorkerServiceOptions = {}): Promise<FakeWorkerService> {
  const messages: WorkerMessage[] = [];
  const requests: string[] = [];
  const sockets = new Set<WebSocket>();
  const waiting = new Set<() => void>();
  let refusal: number | undefined;
  let connections = 0;
  let acknowledges = true;
  const server: Server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    if (options.onRequest !== undefined) options.onRequest(request, response);
    else response.end('{}');
  });
  const upgrades = new WebSocketServer({ noServer: true });
  server.on('upgrade', (request, socket, head) => {
    const known = request.headers.authorization === `Bearer ${options.key ?? 'test-key'}`;
    const status = refusal ?? (known ? undefined : 401);
    if (status !== undefined || !request.url?.startsWith('/api/v1/selfhosted/worker/ws?worker_id=')) {
      socket.end(`HTTP/1.1 ${status ?? 404} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    upgrades.handleUpgrade(request, socket, head, (connection) => {
      connections += 1;
      sockets.add(connection);
      connection.on('close', () => sockets.delete(connection));
      connection.on('message', (data) => {
        const message = WorkerMessage.parse(JSON.parse(data.toString()));
        const answer = (sent: ServiceMessage) => connection.send(JSON.stringify(sent));
        if (message.type === 'worker_hello') {
          const { token, instance_id } = message.data;
          if (token === undefined) answer({ type: 'worker_welcome', data: { token: `token of ${instance_id}` } });
        } else if (acknowledges && 'seq' in message && message.seq !== undefined) {
          answer({ type: 'messages_applied', data: { seq: message.seq } });
        }
        messages.push(message);
        for (const look of waiting) look();
      });
    });
  });
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  const sendText = (text: string): void => {
    for (const socket of sockets) {
      if (socket.readyState !== WebSocket.OPEN) continue;
      socket.send(text);
      return;
    }
    throw new Error('no worker is connected');
  };

  return {
    url: `http://127.0.0.1:${port}`,
    port,
    messages,
    requests,
    connectionCount: () => connections,
    send: (message) => sendText(JSON.stringify(message)),
    sendText,
    acknowledge(does) {
      acknowledges = does;
    },
    waitFor<T extends keyof DataOf>(type: T, matches: (data: DataOf[T]) => boolean = () => true) {
      const ofType = (): DataOf[T][] =>
        messages.filter((message) => message.type === type).map((message) => message.data as DataOf[T]);
      return new Promise<DataOf[T]>((resolve) => {
        const look = (): void => {
          const data = ofType().find(matches);
          if (data === undefined) return;
          waiting.delete(look);
          resolve(data);
        };
        waiting.add(look);
        look();
      });
    },
    cutConnections() {
      for (const socket of sockets) socket.terminate();
    },
    refuseWith(status) {
      refusal = status;
    },
    async close() {
      for (const socket of sockets) socket.terminate();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Returns an assignment with the members that a test chooses. The worker passes `args` to the agent unchanged. */
export function fakeAssignment(
  executionId: string,
  args: readonly string[] = [],
  env: Record<string, string> = {},
  assignmentId = `assignment-of-${executionId}`,
): TaskAssignment {
  const taskId = `task-of-${executionId}`;
  const now = new Date().toISOString();
  return {
    type: 'task_assignment',
    data: {
      task_id: taskId,
      execution_id: executionId,
      assignment_id: assignmentId,
      task: {
        id: taskId,
        title: 'A task',
        task_definition: { prompt: 'Do it.' },
        created_at: now,
        updated_at: now,
        agent_config_snapshot: {},
      },
      env_vars: { RUNYARD_RUN_TOKEN: 'run-token', ...env },
      additional_oz_args: [...args],
    },
  };
}
