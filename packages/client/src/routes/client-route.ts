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
  /** The answer has a JSON body. */
  readonly isJson: boolean;
  /** A repeated request with the same `Idempotency-Key` takes effect only once. */
  readonly isOnce: boolean;
}

/** Routes that the client calls: all except routes that need a run token or a signed URL. */
export type ClientRouteName = {
  [N in RouteName]: (typeof routes)[N]['allow'] extends AllowKeys | { readonly anyone: 'always' } ? N : never;
}[RouteName];

/** The entries with the exact types that they have in the contract's table. */
export type ClientRoutes = {
  readonly [N in ClientRouteName]: {
    readonly method: (typeof routes)[N]['method'];
    readonly path: (typeof routes)[N]['path'];
    readonly isJson: (typeof routes)[N]['answer'] extends { schema: unknown } ? true : false;
    readonly isOnce: (typeof routes)[N] extends { once: string } ? true : false;
  };
};
