import { routes } from '@runyard/contract/routes';
import { isAtLeast } from '@runyard/contract/wire/access';
import { invalid, notFound, type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import type { SubmitDeps } from '../../runs/runs/submit/prepare.ts';
import { refusedSubmission } from '../../runs/runs/submit/translate.ts';
import { serve, serveOnce } from '../../team/access/serve.ts';
import type { WebhookDirectory } from '../webhooks/ingest/directory.ts';
import { readWebhook } from '../webhooks/webhooks.ts';
import { type ReplayOutcome, replayDelivery } from './deliveries/replay.ts';
import { previewAcceptances } from './preview-acceptances.ts';
import { dryRunAutomation, simulateDelivery, type Unsimulated } from './simulate-delivery.ts';
import { startByHand } from './times/start-by-hand.ts';

interface StartRouteDeps extends SubmitDeps {
  readonly db: Database;
  readonly webhooks: WebhookDirectory;
}

const noDelivery = () => notFound('delivery');

function refusedReplay(failure: Exclude<ReplayOutcome, { kind: 'replayed' }>): Refusal {
  switch (failure.kind) {
    case 'not_found':
      return noDelivery();
    case 'no_payload':
      return refuse('conflict', {
        detail:
          'The delivery has no stored payload. Payloads are stored only for accepted deliveries, and old payloads are deleted to make room.',
      });
    case 'disabled':
      return refuse('conflict', { detail: 'The webhook is disabled; enable it first.' });
    case 'rate_limited':
      return refuse('resource_unavailable', {
        detail: 'The webhook has had 60 deliveries within a minute. Replay this one after Retry-After seconds.',
        headers: { 'retry-after': String(Math.ceil(failure.retryAfterMs / 1000)) },
      });
  }
}

const refusedSimulation = (outcome: Unsimulated): Refusal =>
  outcome.kind === 'invalid' ? invalid([outcome.fault]) : notFound(outcome.what);

/** The routes with which a person starts a run of a schedule now, replays a delivery, or simulates a start without creating a run. */
export const startRoutes = (deps: StartRouteDeps): readonly ServedRoute[] => [
  serve(routes.previewAcceptances, async ({ principal }) => {
    const only = isAtLeast(principal.role, 'admin') ? undefined : principal.creator;
    return { executors: await previewAcceptances(deps.db, principal.teamId, only) };
  }),

  serveOnce(routes.runSchedule, {
    check: async ({ params }) => (isUuid(params.scheduleId) ? null : notFound('schedule')),
    work: async (tx, { principal, params }) => {
      const outcome = await startByHand(deps, tx, principal, params.scheduleId);
      if (outcome.kind === 'done') return outcome.response;
      return outcome.failure.kind === 'not_found' ? notFound('schedule') : refusedSubmission(outcome.failure);
    },
  }),

  serveOnce(routes.replayWebhookDelivery, {
    check: async ({ principal: { teamId }, params: { factoryUid, webhookUid, deliveryId } }) => {
      if (!(await readWebhook(deps.db, { teamId, factoryUid, webhookUid }))) return notFound('webhook');
      return isUuid(deliveryId) ? null : noDelivery();
    },
    work: async (tx, { principal, params }) => {
      const outcome = await replayDelivery(tx, deps, principal, params.webhookUid, params.deliveryId);
      return outcome.kind === 'replayed' ? outcome.delivery : refusedReplay(outcome);
    },
  }),

  serve(routes.simulateDelivery, async ({ principal: { teamId }, params, body }) => {
    const { factoryUid, webhookUid } = params;
    const outcome = await simulateDelivery(deps, { teamId, factoryUid }, webhookUid, body);
    return outcome.kind === 'simulated' ? outcome.response : refusedSimulation(outcome);
  }),

  serve(routes.dryRunAutomation, async ({ principal: { teamId }, params, body }) => {
    const { factoryUid, automationUid } = params;
    const outcome = await dryRunAutomation(deps, { teamId, factoryUid }, automationUid, body);
    return outcome.kind === 'start' ? outcome.start : refusedSimulation(outcome);
  }),
];
