/**
 * The part of the contract's routes that the client needs. Imports only types, because the contract's route table would load every
 * schema.
 */

import type { RouteName, routes } from '@runyard/contract/routes';
import type { AllowKeys } from '@runyard/contract/wire/access';
import type { Route } from '@runyard/contract/wire/route';

/** The facts of a route that a call needs. Names in `{}` of the path are parameters. */
export interface ClientRoute {
  readonly method: Route['method'];
  /** Below `/api/v1`. */
  readonly path: string;
  /** The answer has no JSON body. */
  readonly isRaw: boolean;
  /** A repeated request with the same `Idempotency-Key` takes effect only once. */
  readonly isOnce: boolean;
}

/** Reads an entry of the table. */
export function readRoute(entry: string): ClientRoute {
  const [method, path = '', ...facts] = entry.split(' ');
  return { method: method as Route['method'], path, isRaw: facts.includes('raw'), isOnce: facts.includes('once') };
}

/** Routes that the client calls: all except routes that need a run token or a signed URL. */
export type ClientRouteName = {
  [N in RouteName]: (typeof routes)[N]['allow'] extends AllowKeys | { readonly anyone: 'always' } ? N : never;
}[RouteName];

/**
 * The entries as the contract's table has them: method and path, then `raw` if the answer has no JSON body, and `once` if a repeated
 * request takes effect only once. Texts are smaller than objects in the first screen of the dashboard.
 */
export type ClientRoutes = {
  readonly [N in ClientRouteName]: `${(typeof routes)[N]['method']} ${(typeof routes)[N]['path']}${(typeof routes)[N]['answer'] extends {
    schema: unknown;
  }
    ? ''
    : ' raw'}${(typeof routes)[N] extends { once: string } ? ' once' : ''}`;
};
