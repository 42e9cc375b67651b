/**
 * The service's side of `/api/v1/harness-support/*` for the agent's tests, on loopback or a Unix socket: hands out one
 * task, checks and keeps what is reported as the real one does, and can misbehave.
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
import { AgentEvent, type AgentTask, FinishTask, type InboxItem } from '@runyard/contract/agent-protocol';

export interface FakeArtifact {
  artifact_uid: string;
  artifact_type: string;
  data: Record<string, unknown>;
  /** Uploaded bytes. */
  bytes?: Buffer;
}

/** What to answer instead of the right thing: a status, or `cut`: handled, but the answer never arrives. */
export interface FakeFault {
  status: number | 'cut';
  headers?: Record<string, string>;
  body?: string;
}

export interface FakeHarnessSupport {
  /** Server root, without `/api/v1`; for a Unix socket a name that leads nowhere. */
  readonly url: string;
  readonly socketPath: string | undefined;
  readonly token: string;
  task: AgentTask;
  /** Applied events, in order, each once. */
  readonly events: readonly AgentEvent[];
  readonly finished: readonly FinishTask[];
  readonly shutdowns: readonly string[];
  readonly artifacts: readonly FakeArtifact[];
  /** Snapshots that were begun; the bytes of their files as far as they have come. */
  readonly snapshots: readonly { turn: number; files: { filename: string; size_bytes: number; bytes?: Buffer }[] }[];
  /** Archives of the workspace that were kept, each with its turn. */
  readonly workspaces: readonly { turn: number; session: string | null; bytes: Buffer }[];
  /** Path and body size of every request. */
  readonly requests: readonly { method: string; path: string; bytes: number; authorization: string | undefined }[];
  /** Files by the path they are served under. */
  readonly files: Map<string, Buffer>;
  /** Requests whose path begins with the key are passed on to the URL, as the gateway does it. */
  readonly forwards: Map<string, string>;
  /** The cancel goes out over the inbox. */
  cancel(): void;
  /** So does this; a follow-up again and again until the agent names its position. */
  tell(item: InboxItem): void;
  /** What a `finish-task` is answered. */
  next: 'wait' | 'leave';
  /** From now on every request gets 401. */
  supersede(): void;
  /** Decides before each request is handled; undefined: no fault. */
  fault: (request: { method: string; path: string; body: string }) => FakeFault | undefined;
  /** Answers what the fake itself does not know; undefined: 404. */
  more: (request: {
    method: string;
    path: string;
    query: URLSearchParams;
    body: unknown;
  }) => Promise<{ status: number; value: unknown } | undefined> | undefined;
  /** Resolves as soon as `condition` holds; checked after every request. */
  until(condition: (fake: FakeHarnessSupport) => boolean): Promise<void>;
  /** Text of all conversation text events with this role. */
  text(role?: string): string;
  /** Output of an action as a reader of the conversation sees it. */
  output(actionId: string): string;
  close(): Promise<void>;
}

const prefix = '/api/v1/harness-support';

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
  const events: AgentEvent[] = [];
  const finished: FinishTask[] = [];
  const shutdowns: string[] = [];
  const artifacts: FakeArtifact[] = [];
  const snapshots: { turn: number; files: { filename: string; size_bytes: number; bytes?: Buffer }[] }[] = [];
  const workspaces: { turn: number; session: string | null; bytes: Buffer }[] = [];
  /** First answers by Idempotency-Key. */
  const answered = new Map<string, { status: number; value: unknown }>();
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
    const result = known ?? (await apply(method, path, body, url));
    if (typeof key === 'string') answered.set(key, result);
    changed.emit('change');
    if (cut) return void response.destroy();
    if (Buffer.isBuffer(result.value)) {
      response.writeHead(result.status, { 'content-type': 'application/octet-stream' });
      response.end(result.value);
    } else answer(result.status, result.value);
  }

  async function apply(
    method: string,
    path: string,
    body: Buffer,
    url: URL,
  ): Promise<{ status: number; value: unknown }> {
    const json = (): unknown => JSON.parse(body.toString() || '{}');
    const file = fake.files.get(path);
    if (method === 'GET' && file !== undefined) return { status: 200, value: file };
    if (method === 'PUT' && path.startsWith('/uploads/')) {
      const artifact = artifacts.find((each) => path === `/uploads/${each.artifact_uid}`);
      if (artifact === undefined) return { status: 404, value: {} };
      artifact.bytes = body;
      return { status: 200, value: {} };
    }
    const upload = /^\/snapshots\/(\d+)\/(\d+)$/.exec(path);
    if (method === 'PUT' && upload) {
      const snapshotFile = snapshots[Number(upload[1])]?.files[Number(upload[2])];
      if (snapshotFile) snapshotFile.bytes = body;
      return { status: 200, value: {} };
    }
    switch (`${method} ${path.slice(prefix.length)}`) {
      case 'POST /resolve-prompt':
        return { status: 200, value: fake.task };
      case 'POST /events':
        return applyEvents((json() as { events: unknown[] }).events);
      case 'GET /inbox':
        return { status: 200, value: { items: await inbox(url.searchParams) } };
      case 'POST /finish-task':
        finished.push(FinishTask.parse(json()));
        return { status: 200, value: { next: fake.next } };
      case 'POST /upload-snapshot': {
        const snapshot = json() as (typeof snapshots)[number];
        const number = snapshots.push(snapshot) - 1;
        const files = snapshot.files.map(({ filename }, index) => ({
          filename,
          upload_url: `${fake.url}/snapshots/${number}/${index}`,
        }));
        return { status: 200, value: { files } };
      }
      case 'PUT /workspace':
        workspaces.push({
          turn: Number(url.searchParams.get('turn')),
          session: url.searchParams.get('session_id'),
          bytes: body,
        });
        return { status: 200, value: {} };
      case 'POST /report-shutdown':
        shutdowns.push((json() as { reason: string }).reason);
        return { status: 200, value: {} };
      case 'POST /report-artifact': {
        const reported = json() as { artifact_type: string; data: Record<string, unknown> };
        const artifact_uid = `artifact-${artifacts.length + 1}`;
        artifacts.push({ artifact_uid, ...reported });
        const uploads = reported.artifact_type === 'FILE' || reported.artifact_type === 'SCREENSHOT';
        return {
          status: 200,
          value: { artifact_uid, ...(uploads ? { upload_url: `${fake.url}/uploads/${artifact_uid}` } : {}) },
        };
      }
      default: {
        const found = await fake.more({
          method,
          path: path.slice(prefix.length),
          query: url.searchParams,
          body: json(),
        });
        return found ?? { status: 404, value: { title: 'Not found', status: 404 } };
      }
    }
  }

  /** As the real service: what was applied is skipped, a gap is not crossed, and text that jsonb cannot hold is refused. */
  function applyEvents(batch: unknown[]): { status: number; value: unknown } {
    for (const value of batch) {
      const parsed = AgentEvent.safeParse(value);
      if (!parsed.success)
        return { status: 400, value: { title: 'Invalid request', status: 400, detail: parsed.error.message } };
      if (/\\u(0000|d[89a-f])/i.test(JSON.stringify(value)))
        return { status: 400, value: { title: 'Invalid request', status: 400, detail: 'NUL or a lone surrogate' } };
      if (parsed.data.seq === (events.at(-1)?.seq ?? 0) + 1) events.push(parsed.data);
    }
    return { status: 200, value: { acknowledged: events.at(-1)?.seq ?? 0 } };
  }

  async function inbox(query: URLSearchParams): Promise<InboxItem[]> {
    const end = AbortSignal.timeout(Number(query.get('wait_ms')));
    const after = Number(query.get('after'));
    for (;;) {
      if (cancelled) return [{ type: 'cancel' }];
      const items = told.filter((item) => item.type !== 'follow_up' || item.position > after);
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
    events,
    finished,
    shutdowns,
    artifacts,
    snapshots,
    workspaces,
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
    text: (role = 'assistant') =>
      events.map((event) => (event.type === 'text' && event.role === role ? event.text : '')).join(''),
    output: (actionId) => {
      const result = events.find((event) => event.type === 'action_result' && event.action_id === actionId);
      if (result?.type === 'action_result' && result.output !== undefined) return String(result.output);
      return events
        .map((event) => (event.type === 'action_output' && event.action_id === actionId ? event.text : ''))
        .join('');
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
