/**
 * The slow reads, with which every screen converges. Event streams and answers may be late, lost or in another order than they were sent.
 * So a visible page also reads each thing that it shows again and again.
 */

import { failureOf } from './problem.ts';

/** Time between two slow reads, in milliseconds. */
export const slowMs = 15_000;

/**
 * Returns the milliseconds until a query is read again: 15 s, or the time during which its data counts as fresh, if that is longer.
 * False: never, for data that does not change, and for a list of which the reader has opened several pages, because its rows would move.
 * A query that failed is always read again, but not before the time that the service named in `Retry-After`.
 */
export function slowRead({
  state,
  observers,
}: {
  readonly state: { readonly status: string; readonly data?: unknown; readonly error?: unknown };
  readonly observers: readonly { readonly options: { readonly staleTime?: unknown } }[];
}): number | false {
  if (state.status === 'error') return slowMs + Math.max(0, (failureOf(state.error).retryAt ?? 0) - Date.now());
  if (((state.data as { pages?: readonly unknown[] } | undefined)?.pages?.length ?? 1) > 1) return false;
  const freshMs = observers[0]?.options.staleTime;
  const ms = Math.max(slowMs, typeof freshMs === 'number' ? freshMs : 0);
  return Number.isFinite(ms) ? ms : false;
}
