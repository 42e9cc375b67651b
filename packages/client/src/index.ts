/** Typed client of the API: one method for each endpoint of the contract's route table. */

import type { TeamDeliveryEvent } from '@runyard/contract/automations/team-lists';
import type { routes } from '@runyard/contract/routes';
import type { LiveEvent, TeamLiveEvent } from '@runyard/contract/runs/live-events';
import { apiPrefix, type Route } from '@runyard/contract/wire/route';
import { backoffMs, delay } from '@runyard/system/backoff';
import { untrustedCertificate } from '@runyard/system/untrusted-certificate';
import type { z } from 'zod';
import { ApiError, ConnectionError, errorOf, readError, unknownId } from './api-error.ts';
import type { RunFollowOptions } from './events.ts';
import type { FollowOptions, ReceivedEvent } from './follow.ts';
import { type ClientRoute, type ClientRouteName, readRoute } from './routes/client-route.ts';
import { clientRoutes } from './routes/table.ts';
import { readText, watchSilence } from './silence.ts';

export { ApiError, ConnectionError, EventsGoneError } from './api-error.ts';
export type { FollowOptions, ReceivedEvent } from './follow.ts';

export interface ClientOptions {
  /** Origin of the service. A trailing `/api/v1` is ignored. */
  readonly baseUrl: string;
  /** API key. If it is absent, only endpoints that need no key can be called. */
  readonly apiKey?: string;
  /** Team in which the requests act. Default: the team in which the key was created. */
  readonly teamUid?: string;
  /** Value of the `User-Agent` header, such as `runyard-cli/1.0`. */
  readonly userAgent?: string;
  /**
   * Longest time in milliseconds without data from the service: before the answer, and between two chunks of a JSON body. Default:
   * 60,000.
   */
  readonly timeoutMs?: number;
  /** How often a request is repeated after a lost connection, a cut body or a retryable problem, if a repetition is safe. Default: 2. */
  readonly retries?: number;
  readonly fetch?: typeof fetch;
  /**
   * True: the service refuses unknown members and parameters (`Prefer: handling=strict`). Default: the service ignores unknown members
   * and parameters.
   */
  readonly strict?: boolean;
}

interface CallOptions {
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

type Part<R extends Route, Name extends 'params' | 'query' | 'body'> = R[Name] extends z.ZodType
  ? z.input<R[Name]>
  : never;
type Input<R extends Route> = CallOptions &
  (R['params'] extends z.ZodType ? { readonly params: Part<R, 'params'> } : unknown) &
  (R['query'] extends z.ZodType ? { readonly query?: Part<R, 'query'> } : unknown) &
  (R['body'] extends z.ZodType ? { readonly body: Part<R, 'body'> } : unknown);

/** Result of a call: the JSON body of the answer, the target URL of a redirect, or the `Response` if the body is not JSON. */
type Output<R extends Route> = R['answer'] extends { schema: infer S extends z.ZodType }
  ? z.output<S>
  : R['answer'] extends { status: 302 }
    ? { readonly location: string }
    : Response;

type Arguments<R extends Route> = R['params'] extends z.ZodType
  ? [input: Input<R>]
  : R['body'] extends z.ZodType
    ? [input: Input<R>]
    : [input?: Input<R>];

/** Routes for which the client has a method with the route's name. Event streams have the methods below. */
type MethodName = {
  [N in ClientRouteName]: (typeof routes)[N]['answer'] extends { contentType: 'text/event-stream' } ? never : N;
}[ClientRouteName];

export type Client = {
  readonly [N in MethodName]: (...input: Arguments<(typeof routes)[N]>) => Promise<Output<(typeof routes)[N]>>;
} & {
  /** Follows a run until it has ended, and reconnects when needed. Throws EventsGoneError if `lastEventId` is too old. */
  streamRunEvents(runId: string, options?: RunFollowOptions): AsyncGenerator<ReceivedEvent<LiveEvent>>;
  /**
   * Follows the states and timelines of all runs of the team until the signal is aborted. Begins after `lastEventId` or, without it, with
   * new events.
   */
  streamTeamEvents(options?: FollowOptions): AsyncGenerator<ReceivedEvent<TeamLiveEvent>>;
  /**
   * Follows the deliveries to all webhooks of the team until the signal is aborted. Begins after `lastEventId` or, without it, with new
   * deliveries.
   */
  streamTeamDeliveries(options?: FollowOptions): AsyncGenerator<ReceivedEvent<TeamDeliveryEvent>>;
};

interface AnyInput extends CallOptions {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

/** Loads node:http on the first request, but not if the caller passes a `fetch` function, for example in a browser. */
const loadPlain = () => import('./send-plain.ts');

/** Loads the module of streams on their first use, because its schemas take long to load. */
const loadEvents = () => import('./events.ts');

/**
 * Returns the path of a request. Throws ApiError for an empty id, `.` and `..`, because they would lead to another path (WHATWG URL, 4.4).
 */
function pathOf(route: ClientRoute, params: AnyInput['params'] = {}): string {
  const segment = (name: string): string => {
    const value = params[name] ?? '';
    if (['', '.', '..'].includes(value)) throw unknownId(name, value);
    return encodeURIComponent(value);
  };
  return apiPrefix + route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => segment(name));
}

/**
 * Returns the query string, `?` included. For an array, each item is written as `name=value`; for an object, each member is written as
 * `name[key]=value`.
 */
function queryText(query: Readonly<Record<string, unknown>> = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]): [string, string][] => {
    if (value === undefined) return [];
    if (Array.isArray(value)) return value.map((each) => [name, String(each)]);
    if (typeof value === 'object' && value !== null) {
      return Object.entries(value).map(([key, each]) => [`${name}[${key}]`, String(each)]);
    }
    return [[name, String(value)]];
  });
  return pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : '';
}

/**
 * Creates a client of one service.
 *
 * ```ts
 * const client = createClient({ baseUrl: 'http://127.0.0.1:4180', apiKey });
 * const { run_id } = await client.createRun({ body: { prompt: 'Say hello' } });
 * for await (const { event } of client.streamRunEvents(run_id)) console.log(event);
 * ```
 */
export function createClient(options: ClientOptions): Client {
  const base = options.baseUrl.replace(/\/+$/, '').replace(new RegExp(`${apiPrefix}$`), '');
  const send = options.fetch ?? fetch;

  const timeoutMs = options.timeoutMs ?? 60_000;

  /** Sends the request once. Returns its JSON body, the target of a redirect, or the response with its body unread. */
  const once = async (route: ClientRoute, input: AnyInput, headers: Record<string, string>): Promise<unknown> => {
    const path = pathOf(route, input.params) + queryText(input.query);
    const silence = watchSilence(timeoutMs);
    try {
      const request = {
        method: route.method,
        signal: input.signal ? AbortSignal.any([input.signal, silence.signal]) : silence.signal,
        headers,
        ...(input.body === undefined ? {} : { body: JSON.stringify(input.body) }),
      };
      if (!route.isRaw && options.fetch === undefined) {
        const { sendPlain } = await loadPlain();
        const { status, text, retryAfter } = await sendPlain(base + path, request, silence.heard);
        if (status >= 400) throw errorOf({ status, url: base + path, text, retryAfter });
        return JSON.parse(text);
      }
      const response = await send(base + path, { ...request, redirect: 'manual' });
      if (response.status >= 400) throw errorOf(await readError(response));
      if (!route.isRaw) return JSON.parse(await readText(response.body ?? [], silence.heard));
      if (response.status !== 302) return response;
      await response.body?.cancel();
      return { location: response.headers.get('location') ?? '' };
    } catch (error) {
      if (error instanceof ApiError) throw error;
      input.signal?.throwIfAborted();
      throw new ConnectionError(`${base} does not answer: ${reasonOf(error)}`, { cause: error });
    } finally {
      silence.stop();
    }
  };

  const headersOf = (route: ClientRoute, input: AnyInput): Record<string, string> => ({
    ...(options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey}` }),
    ...(options.teamUid === undefined ? {} : { 'x-team-uid': options.teamUid }),
    ...(options.userAgent === undefined ? {} : { 'user-agent': options.userAgent }),
    ...(options.strict ? { prefer: 'handling=strict' } : {}),
    ...(input.body === undefined ? {} : { 'content-type': 'application/json' }),
    // Each repetition sends the same `Idempotency-Key`. So a repeated create request has no second effect if the service has handled the
    // first request and only the answer was lost.
    ...(route.isOnce ? { 'idempotency-key': randomKey() } : {}),
    ...input.headers,
  });

  const call = async (route: ClientRoute, input: AnyInput = {}): Promise<unknown> => {
    const headers = headersOf(route, input);
    const repetitions = route.method === 'GET' || route.isOnce ? (options.retries ?? 2) : 0;
    for (let tries = 0; ; tries += 1) {
      try {
        return await once(route, input, headers);
      } catch (error) {
        const again =
          error instanceof ConnectionError || (error instanceof ApiError && error.retryable && error.status !== 409);
        if (!again || tries >= repetitions) throw error;
        await delay(backoffMs({ firstMs: 200, longestMs: 10_000 }, tries + 1), input.signal);
      }
    }
  };

  const methods = Object.entries(clientRoutes).map(([name, entry]) => [
    name,
    (input?: AnyInput) => call(readRoute(entry), input),
  ]);

  const open =
    (entry: string, input: AnyInput = {}) =>
    async (headers: Record<string, string>, signal: AbortSignal) => {
      const response = await send(base + pathOf(readRoute(entry), input.params) + queryText(input.query), {
        headers: { ...headersOf(readRoute(entry), {}), ...headers },
        signal,
        // A redirect would send the key on to another path, or follow the answer of another program.
        redirect: 'manual',
      });
      if (!response.ok) throw errorOf(await readError(response));
      return response;
    };

  return {
    ...Object.fromEntries(methods),
    async *streamRunEvents(runId, { follow, ...options } = {}) {
      const input = { params: { runId }, query: follow === undefined ? {} : { follow } };
      const { followRunEvents } = await loadEvents();
      yield* followRunEvents(open(clientRoutes.streamRunEvents, input), options);
    },
    async *streamTeamEvents(follow = {}) {
      const { followTeamEvents } = await loadEvents();
      yield* followTeamEvents(open(clientRoutes.streamTeamEvents), follow);
    },
    async *streamTeamDeliveries(follow = {}) {
      const { followTeamDeliveries } = await loadEvents();
      yield* followTeamDeliveries(open(clientRoutes.streamTeamDeliveries), follow);
    },
  } as Client;
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return untrustedCertificate(cause) ?? (cause instanceof Error ? cause.message : String(cause));
}

/** Returns 128 random bits in hexadecimal. `crypto.randomUUID` is missing in browsers on pages without TLS. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
