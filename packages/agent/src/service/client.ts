import type { Readable } from 'node:stream';
import type {
  AgentEventAck,
  AgentInbox,
  AgentTask,
  FinishTask,
  FinishTaskResponse,
  ReportArtifact,
  ReportArtifactResponse,
} from '@runyard/contract/agent-protocol';
import { backoffMs, delay, retryAfterMs } from '@runyard/contract/backoff';
import type { UploadSnapshot, UploadSnapshotResponse } from '@runyard/contract/handoff';
import { firstPart } from '@runyard/contract/shorten';
import { storableJson } from '@runyard/contract/storable-json';
import type { z } from 'zod';
import { newId } from '../new-id.ts';
import { AnswerTooLarge, type Lane, readBody, type ServiceConnection, type ServiceRequest } from './connection.ts';

/** The run token's execution was ended or superseded (401): nothing more may be reported. */
export class Superseded extends Error {
  override name = 'Superseded';
}

/** The service refused a request for good (4xx other than 401, 408 and 429). */
export class ServiceRefusal extends Error {
  override name = 'ServiceRefusal';
  readonly status: number;
  readonly errorCode: string | undefined;
  /** The service's own words, for who asked for the call. */
  readonly detail: string;
  constructor(status: number, path: string, body: string) {
    const problem = parseProblem(body);
    const detail = problem?.detail ?? problem?.title ?? firstPart(body, 500);
    super(`the service refused ${path.split('?')[0]} with ${status}: ${detail || 'no reason given'}`);
    this.status = status;
    this.detail = detail || `the service answered ${status}`;
    this.errorCode = problem?.error_code;
  }
}

/** What was to be sent cannot be read: sending it again would not help. */
export class UnreadableBody extends Error {
  override name = 'UnreadableBody';
}

export interface ServiceClientOptions {
  connection: ServiceConnection;
  /** First and longest wait between tries. */
  firstRetryMs?: number;
  maxRetryMs?: number;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  idleTimeoutMs?: number;
  lane?: Lane;
}

/** A call whose answer is JSON. */
export interface AskOptions extends CallOptions {
  /** Sent as JSON. */
  body?: object;
  /** The same on each try: what was done already is not done again. */
  idempotencyKey?: string;
  /** Statuses that are answers here, although they usually mean that one should try again. */
  finalStatuses?: readonly number[];
}

/** What the agent asks of the service. Every call is retried until it is answered, aborted, refused or superseded. */
export interface ServiceClient {
  readonly connection: ServiceConnection;
  resolvePrompt(options?: CallOptions): Promise<AgentTask>;
  /** `body` is a serialised AgentEventBatch. */
  sendEvents(body: string, options?: CallOptions): Promise<z.infer<typeof AgentEventAck>>;
  /** `position`: what the agent has already. */
  pollInbox(
    waitMs: number,
    position: { after: number; interrupted: number },
    options?: CallOptions,
  ): Promise<AgentInbox>;
  reportArtifact(
    body: z.infer<typeof ReportArtifact>,
    options?: CallOptions,
  ): Promise<z.infer<typeof ReportArtifactResponse>>;
  /** Begins a snapshot; its files are uploaded one by one. */
  uploadSnapshot(body: UploadSnapshot, options?: CallOptions): Promise<UploadSnapshotResponse>;
  /** PUTs `size` bytes (undefined: not known before); `open` gives a fresh stream of them for each try. */
  upload(
    path: string,
    open: () => Readable,
    size: number | undefined,
    contentType: string,
    options?: CallOptions,
  ): Promise<void>;
  download(path: string, maxBytes: number, options?: CallOptions): Promise<Buffer>;
  /** Any other call; `path` is below `/harness-support/`. */
  ask<T>(method: 'GET' | 'POST', path: string, options?: AskOptions): Promise<T>;
  /** The end of a turn; what to do next. */
  finishTask(body: FinishTask, options?: CallOptions): Promise<FinishTaskResponse['next']>;
  reportShutdown(reason: string, options?: CallOptions): Promise<void>;
}

/** What another try would not mend. */
const finalErrors = [Superseded, ServiceRefusal, AnswerTooLarge, UnreadableBody] as const;

const harnessSupport = '/api/v1/harness-support';
const maxAnswerBytes = 64 * 1024 * 1024;
const report = (options: CallOptions = {}): CallOptions => ({ ...options, lane: 'reports' });

export function serviceClient(options: ServiceClientOptions): ServiceClient {
  const { connection, firstRetryMs = 100, maxRetryMs = 5_000 } = options;

  /** `makeRequest` is called for each try: a body that is a stream can be sent only once. */
  async function call(
    makeRequest: () => ServiceRequest,
    signal: AbortSignal | undefined,
    maxBytes: number,
    finalStatuses: readonly number[] = [],
  ): Promise<Buffer> {
    for (let attempt = 0; ; attempt++) {
      signal?.throwIfAborted();
      const request = makeRequest();
      let waitMs = backoffMs({ firstMs: firstRetryMs, longestMs: maxRetryMs }, attempt + 1);
      try {
        const answer = await connection.open(request);
        const status = answer.statusCode ?? 0;
        const body = await readBody(answer, status < 300 ? maxBytes : 64 * 1024);
        if (status >= 200 && status < 300) return body;
        if (status === 401)
          throw new Superseded('the run token is no longer valid: the execution was ended or superseded');
        if (finalStatuses.includes(status) || (status < 500 && status !== 408 && status !== 429))
          throw new ServiceRefusal(status, request.path, body.toString());
        waitMs = Math.max(waitMs, Math.min(retryAfterMs(answer.headers['retry-after']) ?? 0, 60_000));
      } catch (error) {
        if (finalErrors.some((kind) => error instanceof kind)) throw error;
        signal?.throwIfAborted();
      }
      await delay(waitMs, signal);
    }
  }

  async function post<T>(
    path: string,
    body: string,
    call_: CallOptions = {},
    headers: Readonly<Record<string, string>> = {},
  ): Promise<T> {
    const answer = await call(
      () => ({
        method: 'POST',
        path: `${harnessSupport}/${path}`,
        headers: { 'content-type': 'application/json', ...headers },
        body,
        signal: call_.signal,
        idleTimeoutMs: call_.idleTimeoutMs ?? 30_000,
        lane: call_.lane,
      }),
      call_.signal,
      maxAnswerBytes,
    );
    return JSON.parse(answer.toString() || '{}') as T;
  }

  const get = (path: string, maxBytes: number, call_: CallOptions = {}) =>
    call(
      () => ({
        method: 'GET',
        path,
        signal: call_.signal,
        idleTimeoutMs: call_.idleTimeoutMs ?? 30_000,
        lane: call_.lane,
      }),
      call_.signal,
      maxBytes,
    );

  return {
    connection,
    resolvePrompt: (call_) => post('resolve-prompt', '{}', report(call_)),
    sendEvents: (body, call_) => post('events', body, report(call_)),
    pollInbox: async (waitMs, { after, interrupted }, call_) => {
      const path = `${harnessSupport}/inbox?wait_ms=${waitMs}&after=${after}&interrupted=${interrupted}`;
      const polled = await get(path, maxAnswerBytes, report({ idleTimeoutMs: waitMs + 15_000, ...call_ }));
      return JSON.parse(polled.toString());
    },
    // The same key on each try: an artifact whose answer was lost is not there twice.
    reportArtifact: (body, call_) => post('report-artifact', storableJson(body), call_, { 'idempotency-key': newId() }),
    uploadSnapshot: (body, call_) => post('upload-snapshot', storableJson(body), call_),
    upload: async (path, open, size, contentType, call_ = {}) => {
      await call(
        () => ({
          method: 'PUT',
          path,
          headers: {
            'content-type': contentType,
            ...(size === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(size) }),
          },
          body: size === 0 ? '' : open(),
          signal: call_.signal,
          idleTimeoutMs: call_.idleTimeoutMs ?? 60_000,
        }),
        call_.signal,
        maxAnswerBytes,
      );
    },
    download: get,
    ask: async (method, path, ask = {}) => {
      const { body, idempotencyKey, signal, finalStatuses } = ask;
      const answer = await call(
        () => ({
          method,
          path: `${harnessSupport}/${path}`,
          headers: {
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
          },
          body: body === undefined ? undefined : storableJson(body),
          signal,
          idleTimeoutMs: ask.idleTimeoutMs ?? 30_000,
          lane: ask.lane,
        }),
        signal,
        maxAnswerBytes,
        finalStatuses,
      );
      return JSON.parse(answer.toString() || '{}');
    },
    finishTask: async (body, call_) => {
      const { next } = await post<Partial<FinishTaskResponse>>('finish-task', storableJson(body), report(call_));
      return next ?? 'leave';
    },
    reportShutdown: async (reason, call_) =>
      void (await post('report-shutdown', storableJson({ reason }), report(call_))),
  };
}

interface ProblemLike {
  title?: string;
  detail?: string;
  error_code?: string;
}

/** The members of a problem document (RFC 7807) that a message needs; undefined where the body is something else. */
export function parseProblem(body: string): ProblemLike | undefined {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value !== 'object' || value === null) return undefined;
    const text = (key: string) => {
      const member = (value as Record<string, unknown>)[key];
      return typeof member === 'string' ? { [key]: member } : {};
    };
    return { ...text('title'), ...text('detail'), ...text('error_code') };
  } catch {
    return undefined;
  }
}
