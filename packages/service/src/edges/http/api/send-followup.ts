import { maxWaitingFollowups } from '@runyard/contract/limits';
import type { routes } from '@runyard/contract/routes';
import { idempotencyConflict } from '../../../platform/idempotency/answer-once.ts';
import { invalid, notFound, type Refusal } from '../../../platform/serving/refusal.ts';
import { sendFollowup as sendToRun } from '../../../runs/runs/follow-ups/send.ts';
import { refusedByPolicy } from '../../../team/content-policy/refused.ts';
import type { Call } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

/** Answers `POST /agent/runs/{runId}/followups`. */
export async function sendFollowup(
  deps: ServiceDeps,
  call: Call<typeof routes.sendFollowup>,
): Promise<Record<string, never> | Refusal> {
  const { params, principal, body } = call;
  const outcome = await sendToRun(deps, { actor: principal, runId: params.runId, request: body, once: call.once });
  switch (outcome.kind) {
    case 'sent':
      return {};
    case 'idempotency_conflict':
      return idempotencyConflict();
    case 'invalid':
      return invalid(outcome.faults);
    case 'not_found':
      return notFound('run');
    case 'policy_violation':
    case 'policy_unavailable':
      return refusedByPolicy(outcome);
    case 'refused':
      return invalid([{ path: outcome.path, message: outcome.reason }]);
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
