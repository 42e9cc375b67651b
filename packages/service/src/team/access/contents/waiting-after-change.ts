import type { ContentKind, WaitingAfterChange } from '@runyard/contract/runs/acceptances';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { Principal } from '../keys/principal.ts';

/**
 * Returns who waits for an acceptance after the caller changed a content; undefined if nothing waits. The domain of starts passes this
 * function to the domains of contents, because the schedules and automations that execute a content are on a higher floor.
 */
export type FindWaiting = (
  db: Queryable,
  caller: Pick<Principal, 'teamId' | 'creator'>,
  kind: ContentKind,
  uid: string,
) => Promise<WaitingAfterChange | undefined>;

/** Adds what waits to the answer to a change. */
export async function withWaiting<T extends object>(
  answer: T,
  waiting: Promise<WaitingAfterChange | undefined>,
): Promise<T & { readonly waiting?: WaitingAfterChange }> {
  const found = await waiting;
  return found ? { ...answer, waiting: found } : answer;
}
