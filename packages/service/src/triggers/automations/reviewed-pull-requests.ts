/** Reads from webhook deliveries of code hosts which pull requests were reviewed, merged or closed. */
import { parseUntrusted } from '@runyard/contract/wire/parse-untrusted';
import { z } from 'zod';
import { canonicalUrl } from '../../runs/files/artifacts/external-reference.ts';
import type { AcceptedDelivery } from '../webhooks/ingest/take-deliveries.ts';

const url = z.string().max(2_000);

/** The parts of GitHub's payloads `pull_request` and `pull_request_review`. */
const GithubPayload = z.object({
  action: z.string().max(100),
  pull_request: z.object({ html_url: url }),
  review: z.object({ state: z.string().max(100) }).optional(),
  sender: z.object({ type: z.string().max(100).optional() }).optional(),
});

/** The parts of GitLab's payload of a merge request. */
const GitlabPayload = z.object({
  object_kind: z.literal('merge_request'),
  object_attributes: z.object({ url, action: z.enum(['merge', 'close', 'approved', 'approval']) }),
});

/** Returns the canonical address of the pull request that a person reviewed, or that was merged or closed; null if there is none. */
export function reviewedPullRequest({
  scheme,
  event,
  payload,
}: Pick<AcceptedDelivery, 'scheme' | 'event' | 'payload'>): string | null {
  if (scheme === 'gitlab') {
    const read = parseUntrusted(GitlabPayload, payload);
    return read.success ? canonicalUrl(read.data.object_attributes.url) : null;
  }
  if (scheme !== 'github') return null;
  const read = parseUntrusted(GithubPayload, payload);
  if (!read.success) return null;
  const { action, pull_request, review, sender } = read.data;
  const isClosed = event === 'pull_request' && action === 'closed';
  // A comment is no decision, and the review of a program is no review by a person.
  const isReviewed =
    event === 'pull_request_review' &&
    action === 'submitted' &&
    (review?.state === 'approved' || review?.state === 'changes_requested') &&
    sender?.type === 'User';
  return isClosed || isReviewed ? canonicalUrl(pull_request.html_url) : null;
}
