/**
 * A fake service for tests of the agent, on loopback or a Unix socket. It has the routes `/api/v1/harness-support/*`: it returns one
 * task, checks and stores reports like the real service, and can simulate faults.
 */
import { EventEmitter, once } from 'node:events';
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AgentTask, InboxItem } from '@runyard/contract/agent/agent-protocol';
import { type FakeRequest, whyRefused } from './harness-support/check-request.ts';
import { type FakeAnswer, type FakeReports, jsonOf, keepReports, prefix } from './harness-support/reports.ts';

/** A wrong answer. `status` is the status to send. With `cut`, the fake handles the request, but the answer never arrives. */
export interface FakeFault {
  status: number | 'cut';
  headers?: Record<string, string>;
  body?: string;
}

export interface FakeHarnessSupport extends FakeReports {
  /** URL of the server, without `/api/v1`. For a Unix socket, its host name is one that cannot be resolved. */
  readonly url: string;
  readonly socketPath: string | undefined;
  readonly token: string;
  task: AgentTask;
  /** Path and body size of every request. */
  readonly requests: readonly { method: string; path: string; bytes: number; authorization: string | undefined }[];
  /** Files that the agent can download, by the path in their download URL. */
  readonly files: Map<string, Buffer>;
  /** The fake forwards a request whose path begins with a key of this map to the URL in the map, as the gateway does. */
  readonly forwards: Map<string, string>;
  /** Tells the agent through its inbox that the run was cancelled. */
  cancel(): void;
  /** Sends the item to the agent's inbox. Sends a follow-up or a request for changes again until the agent acknowledges its id. */
  tell(item: InboxItem): void;
  /** The answer to `finish-task`. */
  next: 'wait' | 'leave';
  /** Answers 401 to every later request, as the service does to a superseded execution. */
  supersede(): void;
  /** Returns the fault of a request before the request is handled, or undefined for no fault. */
  fault: (request: { method: string; path: string; body: string }) => FakeFault | undefined;
  /**
   * A function of the test that answers requests which the fake does not know. If the function returns undefined, the fake answers
   * 404.
   */
  more: (request: {
    method: string;
    path: string;
    query: URLSearchParams;
    body: unknown;
  }) => Promise<FakeAnswer | undefined> | undefined;
  /** Resolves as soon as `condition` returns true. The fake calls `condition` after every request. */
  until(condition: (fake: FakeHarnessSupport) => boolean): Promise<void>;
  close(): Promise<void>;
}

/** Returns a task as the service sends it to an agent. */
export function fakeTask(task: Partial<AgentTask> = {}): AgentTask {
  return {
    run_id: 'run-1',
    execution_id: 'execution-1',
    execution_number: 1,
    conversation_id: 'conversation-1',
    title: 'A task',
    prompt: 'Say hello.',
    agent_config: {},
    attachments: [],
    harness: { type: 'oz' },
    repositories: [],
    ...task,
  };
}

function passOn(incoming: IncomingMessage, body: Buffer, target: string, response: ServerResponse): void {
  const { authorization: _, host: __, ...headers } = incoming.headers;
  const outgoing = httpRequest(target, { method: incoming.method ?? 'GET', headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  outgoing.on('error', () => response.destroy());
  outgoing.end(body);
}

export async function startFakeHarnessSupport(
  options: { task?: Partial<AgentTask>; socketPath?: string } = {},
): Promise<FakeHarnessSupport> {
  const token = 'run-token-of-the-fake-0123456789';
  const changed = new EventEmitter().setMaxListeners(0);
  const { reports, take } = keepReports(() => fake);
  /** The first answer to each Idempotency-Key, which the fake also sends to repeated requests. */
  const answered = new Map<string, FakeAnswer>();
  const requests: { method: string; path: string; bytes: number; authorization: string | undefined }[] = [];
  const told: InboxItem[] = [];
  let cancelled = false;
  let superseded = false;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const url = new URL(request.url ?? '/', 'http://fake');
    const path = url.pathname;
    const method = request.method ?? 'GET';
    const { authorization } = request.headers;
    requests.push({ method, path, bytes: body.length, authorization });
    const answer = (status: number, value: unknown, headers: Record<string, string> = {}) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(typeof value === 'string' ? value : JSON.stringify(value));
    };
    if (superseded || authorization !== `Bearer ${token}`)
      return answer(401, { title: 'Authentication required', status: 401 });
    for (const [start, target] of fake.forwards) {
      if (path.startsWith(start))
        return passOn(request, body, target + (request.url ?? '').slice(start.length), response);
    }
    const fault = fake.fault({ method, path, body: method === 'PUT' ? '' : body.toString() });
    if (fault !== undefined && fault.status !== 'cut') {
      changed.emit('change');
      return answer(fault.status, fault.body ?? { title: 'Fault', status: fault.status }, fault.headers);
    }
    const cut = fault?.status === 'cut';
    const key = request.headers['idempotency-key'];
    const known = typeof key === 'string' ? answered.get(key) : undefined;
    const result = known ?? (await apply({ method, path, query: url.searchParams, body }));
    if (typeof key === 'string') answered.set(key, result);
    changed.emit('change');
    if (cut) return void response.destroy();
    if (Buffer.isBuffer(result.value)) {
      response.writeHead(result.status, { 'content-type': 'application/octet-stream' });
      response.end(result.value);
    } else answer(result.status, result.value);
  }

  async function apply(request: FakeRequest): Promise<FakeAnswer> {
    const detail = await whyRefused(request);
    if (detail !== undefined) return { status: 400, value: { title: 'Invalid request', status: 400, detail } };
    const { method, path, query, body } = request;
    const file = fake.files.get(path);
    if (method === 'GET' && file !== undefined) return { status: 200, value: file };
    const below = path.slice(prefix.length);
    if (`${method} ${below}` === 'POST /resolve-prompt') return { status: 200, value: fake.task };
    if (`${method} ${below}` === 'GET /inbox') return { status: 200, value: { items: await inbox(query) } };
    const found = take(request) ?? (await fake.more({ method, path: below, query, body: jsonOf(body) }));
    return found ?? { status: 404, value: { title: 'Not found', status: 404 } };
  }

  async function inbox(query: URLSearchParams): Promise<InboxItem[]> {
    const end = AbortSignal.timeout(Number(query.get('wait_ms')));
    const after = Number(query.get('after'));
    const asked = Number(query.get('changes'));
    for (;;) {
      if (cancelled) return [{ type: 'cancel' }];
      const isNew = (item: InboxItem) =>
        item.type === 'follow_up' ? item.position > after : item.type !== 'changes' || item.asked > asked;
      const items = told.filter(isNew);
      if (items.length > 0 || superseded || end.aborted) return items;
      await once(changed, 'change', { signal: end }).catch(() => {});
    }
  }

  const server: Server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error));
    });
  });
  await new Promise<void>((resolve) => {
    if (options.socketPath === undefined) server.listen(0, '127.0.0.1', resolve);
    else server.listen(options.socketPath, resolve);
  });
  const port = options.socketPath === undefined ? (server.address() as AddressInfo).port : 9;

  const fake: FakeHarnessSupport = {
    url: `http://127.0.0.1:${port}`,
    socketPath: options.socketPath,
    token,
    task: fakeTask(options.task),
    ...reports,
    requests,
    files: new Map(),
    forwards: new Map(),
    cancel: () => {
      cancelled = true;
      changed.emit('change');
    },
    supersede: () => {
      superseded = true;
      changed.emit('change');
    },
    tell: (item) => {
      told.push(item);
      changed.emit('change');
    },
    next: 'leave',
    fault: () => undefined,
    more: () => undefined,
    until: async (condition) => {
      while (!condition(fake)) await once(changed, 'change');
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
  return fake;
}
