/** The routes of a domain as data: each entry has a route of the contract and the function that answers it. `edges/http` mounts them. */
import type { Readable } from 'node:stream';
import type { AllowKeys, AllowRun } from '@runyard/contract/wire/access';
import type { Route } from '@runyard/contract/wire/route';
import type { z } from 'zod';
import type { Queryable } from '../store/database/database.ts';
import type { Refusal } from './refusal.ts';

/** The client and the id of a request, and the source of a run that the request creates. */
export interface RequestOrigin {
  /** IP address of the client. */
  readonly address: string;
  readonly userAgent: string | null;
  /** Source of a run that the request creates, as a header of the request names it. Absent: the request has no such header. */
  readonly apiSource?: string;
  readonly requestId: string;
  /** When the request arrived, milliseconds since 1970. */
  readonly receivedMs?: number;
  /** The header `traceparent` of the request, which names a trace of the client. The text is not checked. */
  readonly traceparent?: string;
}

type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined;

/**
 * An authorized request whose parts match the schemas of its route. `P` is the type of the owner of an API key, `S` the type of the
 * execution of a run token. `I` is the part of `S` for routes whose statements check the token again.
 */
export interface Call<R extends Route, P, S, I = S> {
  readonly params: Parsed<R['params']>;
  readonly query: Parsed<R['query']>;
  readonly body: Parsed<R['body']>;
  /** Owner of the API key, on routes that accept keys. Null if the route also accepts requests without a key and this request has none. */
  readonly principal: R['allow'] extends AllowKeys
    ? R['allow'] extends { publicThings: true } | { keylessBytes: number }
      ? P | null
      : P
    : null;
  /** The execution to which the run token belongs, on routes that accept run tokens. */
  readonly session: R['allow'] extends { checksToken: true } ? I : R['allow'] extends AllowRun ? S : null;
  readonly from: RequestOrigin;
  /** Sets a header of the answer. */
  setHeader(name: string, value: string): void;
  /** Ends the connection at once. */
  cut(): void;
  /** Returns a signal that is aborted when the answer was sent or the client has disconnected. */
  closed(): AbortSignal;
  /** Returns a signal for long polls and other waits. The signal is aborted when the client disconnects or the service stops. */
  waiting(): AbortSignal;
}

/** An answer that sends the client to another URL. */
export interface Redirect {
  readonly location: string;
}

/** The body of the route's answer, or a stream that contains the body as JSON. */
type Answer<R extends Route> = R['answer'] extends { schema: infer S extends z.ZodType }
  ? z.output<S> | Readable
  : Redirect;

/** The steps of a route that declares `once`. Repetitions of a request do the work only once. */
interface OnceSteps<C, T, A> {
  /** Checks the request before the transaction begins, for example with a request to another program. Returns a refusal, or null. */
  check?(call: C): Promise<Refusal | null>;
  /** Does the work in the transaction that records its result for repetitions of the request. A refusal is not recorded. */
  work(tx: Queryable, call: C): Promise<T | Refusal>;
  /** Makes the answer from the result of the work, for the request and for its repetitions. Default: the answer is the result. */
  answer?(result: T, call: C): A | Refusal | Promise<A | Refusal>;
  /**
   * Name of the operation, if the result of the work has a member `key` with a new API key in clear text. Such a result is encrypted
   * with the API key of the caller before it is recorded, because the service does not store the caller's key. Absent: the result
   * contains no such member.
   */
  readonly keySealedFor?: string;
}

/** One route of a domain. The types of its call and its answer are missing here, because `Serve` has checked them. */
export type ServedRoute =
  | { readonly route: Route; readonly handle: (call: never) => Promise<unknown> }
  | { readonly route: Route; readonly once: OnceSteps<never, unknown, unknown> };

type RouteWithOnce = Route & { readonly once: string };
type RouteWithoutOnce = Route & { readonly once?: never };

/**
 * Functions that pair a route with its handler. `P`, `S` and `I`: see `Call`. `Once` is the type of the identity of a request, with which
 * repetitions are found.
 */
interface Serve<P, S, Once, I> {
  /** A handler returns the body of the answer, or a refusal. */
  readonly serve: <const R extends RouteWithoutOnce>(
    route: R,
    handle: (call: Call<R, P, S, I>) => Promise<Answer<R> | Refusal>,
  ) => ServedRoute;
  readonly serveOnce: <const R extends RouteWithOnce, T = Answer<R>>(
    route: R,
    once: OnceSteps<Call<R, P, S, I>, T, Answer<R>> &
      (T extends Answer<R> ? unknown : { answer: NonNullable<OnceSteps<Call<R, P, S, I>, T, Answer<R>>['answer']> }),
  ) => ServedRoute;
  /**
   * Serves a route whose handler does a part of the work before it begins its transaction. The handler gets the identity of the
   * request as `once` and finds repetitions itself.
   */
  readonly serveRepeatable: <const R extends RouteWithOnce>(
    route: R,
    handle: (call: Call<R, P, S, I> & { readonly once: Once | undefined }) => Promise<Answer<R> | Refusal>,
  ) => ServedRoute;
}

/** Returns the functions that serve routes for one kind of callers. */
export const serveFor = <P, S, Once, I = S>(): Serve<P, S, Once, I> => ({
  serve: (route, handle) => ({ route, handle }),
  serveOnce: (route, once) => ({ route, once: once as OnceSteps<never, unknown, unknown> }),
  serveRepeatable: (route, handle) => ({ route, handle }),
});
