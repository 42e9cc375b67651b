/** Starts syncs earlier when a repository reports a push. */
import { parseUntrusted } from '@runyard/contract/wire/parse-untrusted';
import { z } from 'zod';
import type { Transaction } from '../../../platform/store/database/transaction.ts';
import type { AcceptedDelivery } from '../../webhooks/ingest/take-deliveries.ts';
import { bringSyncForward, type Push } from './records.ts';

/** The parts of GitHub's `push` payload that name the repository and the branch. */
const PushPayload = z.object({
  ref: z.string().startsWith('refs/heads/').max(500),
  repository: z.object({
    name: z.string().max(200),
    full_name: z.string().max(400),
    default_branch: z.string().max(300).optional(),
  }),
});

/**
 * Returns the push that a delivery reports; null if it does not report a push. The push only makes the service read the branch;
 * the commit comes from the code host.
 */
export function pushOf({
  scheme,
  event,
  payload,
}: Pick<AcceptedDelivery, 'scheme' | 'event' | 'payload'>): Push | null {
  if (scheme !== 'github' || event !== 'push') return null;
  const read = parseUntrusted(PushPayload, payload);
  if (!read.success) return null;
  const { ref, repository } = read.data;
  const [owner, repo, ...more] = repository.full_name.split('/');
  if (!owner || !repo || more.length > 0 || /\0/.test(repository.full_name + ref)) return null;
  const branch = ref.slice('refs/heads/'.length);
  return { owner, repo, branch, isDefaultBranch: branch === (repository.default_branch ?? branch) };
}

/** Makes the sources of factories due, together with the commit, where deliveries report a push. */
export function noticePushes(tx: Transaction, deliveries: readonly AcceptedDelivery[]): void {
  const pushes = deliveries.flatMap((delivery) => {
    const push = pushOf(delivery);
    return push ? [{ factoryUid: delivery.factoryUid, push }] : [];
  });
  // Lock the factories last, because a sync also locks them last; lock them in the order of their UIDs, because concurrent transactions do the same.
  for (const { factoryUid, push } of pushes.sort((a, b) => (a.factoryUid < b.factoryUid ? -1 : 1)))
    bringSyncForward(tx, factoryUid, push);
}
