/** The routes of a domain as data: each entry has a route of the contract and the function that answers it. `edges/http` mounts them. */
import type { Readable } from 'node:stream';
import type { AllowKeys, AllowRun } from '@runyard/contract/wire/access';
import type { Route } from '@runyard/contract/wire/route';
import type { z } from 'zod';
import type { Queryable } from '../store/database/database.ts';
import type { Refusal } from './refusal.ts';

/** The client, the id and the named run source of a request. */
export interface RequestOrigin {
  /** IP address of the client. */
  readonly address: string;
  readonly userAgent: string | null;
  /** Source of a run that the request creates, from the header of the request; absent: the request has no such header. */
  readonly apiSource?: string;
  readonly requestId: string;
  /** When the request arrived, milliseconds since 1970. */
  readonly receivedMs?: number;
  /** The trace that the request names. This text of the caller is not checked. */
  readonly traceparent?: string;
}

type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined;

/**
 * An authorized request whose parts match the schemas of its route. `P` owns a key, `S` is the execution of a run token.
 */
export interface Call<R extends Route, P, S> {
  readonly params: Parsed<R['params']>;
  readonly query: Parsed<R['query']>;
  readonly body: Parsed<R['body']>;
  /** Owner of the key, on routes that accept keys; null if the route also accepts requests without a key and this request has none. */
  readonly principal: R['allow'] extends AllowKeys
    ? R['allow'] extends { publicThings: true } | { keylessBytes: number }
      ? P | null
      : P
    : null;
  /** Execution of the run token, on routes that accept run tokens. */
  readonly session: R['allow'] extends AllowRun ? S : null;
  readonly from: RequestOrigin;
  /** Sets a header of the answer. */
  setHeader(name: string, value: string): void;
  /** Ends the connection at once. */
  cut(): void;
  /** Returns a signal that is aborted when the answer was sent or the client has disconnected. */
  closed(): AbortSignal;
  /** Returns a signal for long polls and other waits. It is aborted when the client has disconnected and when the service stops. */
  waiting(): AbortSignal;
}

/** An answer that sends the client to another URL. */
export interface Redirect {
  readonly location: string;
}

/** The body of the route's answer, or a stream with its JSON. */
type Answer<R extends Route> = R['answer'] extends { schema: infer S extends z.ZodType }
  ? z.output<S> | Readable
  : Redirect;

/** The steps of a route that declares `once`. Repetitions of a request do the work only once. */
interface OnceSteps<C, T, A> {
  /** Checks the request before the transaction, for example by asking another program. Returns the refusal of the request, or null. */
  check?(call: C): Promise<Refusal | null>;
  /** Does the work in the transaction that records its result for repetitions of the request. A refusal is not recorded. */
  work(tx: Queryable, call: C): Promise<T | Refusal>;
  /** Makes the answer to the request or to its repetition. Default: the result of the work. */
  answer?(result: T, call: C): A | Refusal | Promise<A | Refusal>;
  /**
   * Names an operation whose result has a raw `key`. The recorded result is encrypted with the caller's own key, which is not stored.
   * Absent: the result has no raw key.
   */
  readonly keySealedFor?: string;
}

/** One route of a domain, without the types that `Serve` has checked. */
export type ServedRoute =
  | { readonly route: Route; readonly handle: (call: never) => Promise<unknown> }
  | { readonly route: Route; readonly once: OnceSteps<never, unknown, unknown> };

type RouteWithOnce = Route & { readonly once: string };
type RouteWithoutOnce = Route & { readonly once?: never };

/** Functions that pair a route with its handler, for callers of the types `P` and `S`. `Once` identifies a repeated request. */
interface Serve<P, S, Once> {
  /** A handler returns the body of the answer, or a refusal. */
  readonly serve: <const R extends RouteWithoutOnce>(
    route: R,
    handle: (call: Call<R, P, S>) => Promise<Answer<R> | Refusal>,
  ) => ServedRoute;
  readonly serveOnce: <const R extends RouteWithOnce, T = Answer<R>>(
    route: R,
    once: OnceSteps<Call<R, P, S>, T, Answer<R>> &
      (T extends Answer<R> ? unknown : { answer: NonNullable<OnceSteps<Call<R, P, S>, T, Answer<R>>['answer']> }),
  ) => ServedRoute;
  /** Serves a route whose use case does a part of its work before its transaction. The handler gets the identity of the request as `once`. */
  readonly serveRepeatable: <const R extends RouteWithOnce>(
    route: R,
    handle: (call: Call<R, P, S> & { readonly once: Once | undefined }) => Promise<Answer<R> | Refusal>,
  ) => ServedRoute;
}

/** Returns the functions for one kind of callers. */
export const serveFor = <P, S, Once>(): Serve<P, S, Once> => ({
  serve: (route, handle) => ({ route, handle }),
  serveOnce: (route, once) => ({ route, once: once as OnceSteps<never, unknown, unknown> }),
  serveRepeatable: (route, handle) => ({ route, handle }),
});
