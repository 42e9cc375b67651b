import type { routes } from '@runyard/contract/routes';
import { maxWaitingFollowups } from '@runyard/contract/run-request';
import { decodeAttachments } from '../../files/attachments/decode.ts';
import { discardAttachments, storeAttachments } from '../../files/attachments/store.ts';
import { findReplay, once } from '../../idempotency/once.ts';
import { acceptFollowup } from '../../runs/follow-ups/accept.ts';
import { isVisibleRun } from '../../runs/read/visible.ts';
import type { Call } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { invalid, notFound, type Refusal } from '../server/problem.ts';
import { idempotencyConflict } from '../server/repeatable.ts';

/**
 * Answers `POST /agent/runs/{runId}/followups`. Its files are put before the transaction that refers to them; where that
 * ends in an error they stay, because it may have been committed all the same, and the sweep finds them if it was not.
 */
export async function sendFollowup(
  deps: ServiceDeps,
  call: Call<typeof routes.sendFollowup>,
): Promise<Record<string, never> | Refusal> {
  const { db, blobs } = deps;
  const { params, principal, body } = call;
  if (!(await isVisibleRun(db, principal.teamId, params.runId))) return notFound('run');
  const request = call.once;
  if (request && body.attachments?.length) {
    // Answered before: nothing is stored again.
    const before = await findReplay<Record<string, never>>(db, request);
    if (before.kind === 'replayed') return before.response;
    if (before.kind === 'conflict') return idempotencyConflict();
  }
  const decoded = decodeAttachments(body.attachments ? { attachments: body.attachments } : {});
  if (decoded.faults.length > 0) return invalid(decoded.faults);
  const attachments = await storeAttachments(blobs, decoded.attachments);
  const followup = { ...body, attachments, from: principal.creator };
  let isUsed = false;
  const outcome = await once(db, request, async (tx) => {
    const accepted = await acceptFollowup(tx, params.runId, followup);
    switch (accepted.kind) {
      case 'empty':
      case 'full':
      case 'not_found':
      case 'refused':
        return { kind: 'failed', failure: accepted };
      default:
        isUsed = true;
        return { kind: 'done', response: {} };
    }
  });
  if (!isUsed) await discardAttachments(blobs, attachments);
  if (outcome.kind === 'conflict') return idempotencyConflict();
  if (outcome.kind === 'done') return outcome.response;
  const { failure } = outcome;
  switch (failure.kind) {
    case 'not_found':
      return notFound('run');
    case 'refused':
      return invalid([{ path: failure.path, message: failure.reason }]);
    case 'full':
      return invalid([
        { path: '', message: `${maxWaitingFollowups} follow-ups wait for the agent; it must take some first` },
      ]);
    case 'empty': {
      const message = 'must not be empty: there is no saved conversation to continue without one, and no decision';
      return invalid([{ path: 'message', message }]);
    }
  }
}
