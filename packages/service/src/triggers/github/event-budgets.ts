/** Limits the events of one repository and of one account. */
import { makeBuckets } from '../../team/access/rate-limits/buckets.ts';
import type { AppRow } from './apps.ts';
import type { AppEvent } from './read-event.ts';

/** Budgets of one process: events of one repository, and of one account, in a minute. */
const ofRepository = makeBuckets({ quota: 120, windowSeconds: 60 });
const ofSender = makeBuckets({ quota: 30, windowSeconds: 60 });

/** Takes an event from the budgets of its repository and its sender; returns how long to wait if one is used up. */
export function takeFromBudgets(app: AppRow, event: AppEvent): number {
  const now = performance.now();
  const repository = `${app.uid} ${event.repository?.id ?? 0}`;
  const sender = `${app.uid} ${event.sender.id}`;
  for (const [buckets, id] of [
    [ofRepository, repository],
    [ofSender, sender],
  ] as const) {
    const { remaining, resetSeconds } = buckets.read(id, now);
    if (remaining < 1) return resetSeconds * 1000;
  }
  ofRepository.take(repository, now);
  ofSender.take(sender, now);
  return 0;
}
