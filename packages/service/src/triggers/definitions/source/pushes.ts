/** Makes a factory sync earlier when a webhook delivery reports a push to its source. */
import { parseUntrusted } from '@runyard/contract/wire/parse-untrusted';
import { z } from 'zod';
import type { Transaction } from '../../../platform/store/database/database.ts';
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
 * Returns the push that a delivery reports; null if it does not report a push. The service then reads the branch at the code host. It
 * does not use the commit that the delivery names.
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

/** For each delivery that reports a push, makes the source of its factory due, with a statement that is sent together with COMMIT. */
export function noticePushes(tx: Transaction, deliveries: readonly AcceptedDelivery[]): void {
  const pushes = deliveries.flatMap((delivery) => {
    const push = pushOf(delivery);
    return push ? [{ factoryUid: delivery.factoryUid, push }] : [];
  });
  // Prevent deadlocks with syncs and other deliveries: all of them lock the rows of sources last, and in the order of the factories' UIDs.
  for (const { factoryUid, push } of pushes.sort((a, b) => (a.factoryUid < b.factoryUid ? -1 : 1)))
    bringSyncForward(tx, factoryUid, push);
}
