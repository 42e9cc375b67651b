/** The ingress, which has the only endpoints for senders of webhooks. */
import { maxWebhookBytes } from '@runyard/contract/limits';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type BodyLimits, type BodyRoom, makeBodyBudget } from '../../../platform/bodies/body-budget.ts';
import { announcedBytes, type BodyPace } from '../../../platform/bodies/read-body.ts';
import { holdBody } from '../../../platform/bodies/request-bodies.ts';
import { count } from '../../../platform/metrics/record.ts';
import { type Refusal, refuse, tooBusy } from '../../../platform/serving/refusal.ts';
import { isUid } from '../../../team/access/teams/uid.ts';
import { makeDeliveryWriter, makeGate } from '../../../triggers/starts/deliveries/delivery-queue.ts';
import { type IngestOutcome, ingest, type Proof } from '../../../triggers/starts/deliveries/ingest.ts';
import { writeDeliveries } from '../../../triggers/starts/deliveries/start-deliveries.ts';
import type { KnownWebhook } from '../../../triggers/webhooks/ingest/directory.ts';
import type { RefuseWhileFull } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { registerGithubIngress } from './github.ts';
import { limitRequests, listUnprovedSenders, refusalOfBody } from './unproved-senders.ts';

const kb = 1024;
const mb = 1024 * kb;

const limitsOf = (small: BodyRoom, large: BodyRoom): BodyLimits => ({
  smallBytes: 16 * kb,
  small,
  large,
  requestsPerExecution: 1,
  waiting: 32,
  waitMs: 5_000,
});

/** Memory for the bodies of authenticated senders, separate from the memory of the API. `perTeam` is the limit for one webhook. */
const provedRoom = limitsOf(
  { total: 5 * mb, share: 64 * kb, common: 4 * mb, perTeam: mb, perExecution: mb },
  { total: 20 * mb, share: 256 * kb, common: 16 * mb, perTeam: 2 * mb, perExecution: 2 * mb },
);
/**
 * Memory for all other bodies: signed bodies, whose sender is verified only when the whole body has arrived, and bodies with a wrong
 * credential, which count as one webhook. If there is no memory for a signed body, the service drops the oldest body and uses its memory,
 * so slow senders do not block others.
 */
const unprovedRoom = limitsOf(
  { total: 3 * mb, perTeam: mb, perExecution: mb },
  { total: 12 * mb, perTeam: 4 * mb, perExecution: 4 * mb },
);

/** A sender has 5 s for any body, and 4 s more for a body of 256 KB. */
const pace: BodyPace = { graceMs: 5_000, bytesPerSecond: 64 * kb };

/** Limits of the requests in progress, in total and for one webhook. Slow senders can then not use all memory. */
const maxInFlight = 1_000;
const maxInFlightOfWebhook = 100;
/** Limit of the requests whose sender is not verified yet, because their body has not arrived. */
const maxUnproved = 500;

/** Registers `POST /webhooks/w/{uid}[/{token}]`, and the endpoint of GitHub Apps. */
export function registerIngress(app: FastifyInstance, deps: ServiceDeps): void {
  const provedBodies = makeBodyBudget(provedRoom);
  const unprovedBodies = makeBodyBudget(unprovedRoom);
  const refuseWhileFull = app.getDecorator<RefuseWhileFull>('refuseWhileFull');
  const concurrent = Math.max(1, Math.floor(deps.settings.RUNYARD_DATABASE_CONNECTIONS / 4));
  const gate = makeGate({ concurrent, waiting: 256 });
  const write = makeDeliveryWriter((deliveries) => writeDeliveries(deps, deliveries), gate);
  const unproved = listUnprovedSenders(maxUnproved);
  const enter = limitRequests({ max: maxInFlight, maxOfOne: maxInFlightOfWebhook }, unproved);

  /**
   * Reads a body within the memory limit for verified or unverified senders. When the sender is verified later, the body counts as a body
   * of a verified sender.
   */
  const readBody = async (
    uid: string,
    proof: Proof,
    { raw: request }: FastifyRequest,
    { raw: response }: FastifyReply,
  ) => {
    const owner = { teamId: proof === 'wrong' ? 'wrong' : uid };
    const moreBytes = request.headers['content-encoding'] === undefined ? 0 : maxWebhookBytes;
    const body = { request, response, owner, maxBytes: maxWebhookBytes, moreBytes, pace };
    if (proof === 'right') return await holdBody(provedBodies, body);
    const received = await unproved.read(uid, unprovedBodies, body, proof === 'open');
    if (received.kind !== 'body') return received;
    const prove = () => {
      const proved = response.destroyed ? undefined : provedBodies.tryEnter(owner, received.bytes.length + moreBytes);
      if (!proved) return;
      response.once('close', proved.release);
      received.place.release();
    };
    return { ...received, prove };
  };

  const take = async (request: FastifyRequest, reply: FastifyReply): Promise<IngestOutcome> => {
    const { uid = '', token } = request.params as { uid?: string; token?: string };
    if (!isUid(uid)) return { kind: 'not_found' };
    if (!enter(uid, reply)) return { kind: 'busy' };
    await refuseWhileFull();
    return await ingest(
      { db: deps.db, directory: deps.webhooks, gate, write },
      {
        uid,
        query: request.url.split('?').slice(1).join('?'),
        urlToken: token,
        headers: request.raw.headers,
        announcedBytes: announcedBytes(request.raw.headers['content-length']),
        readBody: (proof) => readBody(uid, proof, request, reply),
      },
      Date.now,
    );
  };

  // Runs in `onRequest`, which is before fastify checks the type of the body, because the ingress accepts any type. Reads the body after
  // the first checks.
  const onRequest = async (request: FastifyRequest, reply: FastifyReply) => {
    const outcome = await take(request, reply).catch((error: unknown) => {
      closeUnlessRead(request, reply);
      throw error;
    });
    closeUnlessRead(request, reply);
    const { uid = '' } = request.params as { uid?: string };
    const scheme = isUid(uid) ? schemeOf(deps.webhooks.known(uid)) : 'unknown';
    count('runyard_webhook_deliveries_total', { result: outcome.kind, scheme });
    reply.header('cache-control', 'no-store').type('application/json; charset=utf-8');
    switch (outcome.kind) {
      case 'accepted':
      case 'duplicate':
        return reply.code(202).send(JSON.stringify({ delivery_id: outcome.deliveryId }));
      case 'handshake':
        return reply.type(`${outcome.answer.type}; charset=utf-8`).code(200).send(outcome.answer.text);
      default:
        throw refusalOf(outcome);
    }
  };
  const handler = async () => Promise.reject(new Error('the ingress answers before the handler'));
  registerGithubIngress(app, deps, { ...deps, api: deps.githubApi, submit: deps, write });
  app.post('/webhooks/w/:uid', { onRequest }, handler);
  app.post('/webhooks/w/:uid/:token', { onRequest }, handler);
}

/** Returns the label of a webhook's scheme. */
const schemeOf = (webhook: KnownWebhook | undefined): string =>
  webhook === undefined ? 'unknown' : (webhook.scheme ?? 'token');

/** Closes the connection after the answer if the body has not arrived completely. */
function closeUnlessRead(request: FastifyRequest, reply: FastifyReply): void {
  if (!request.raw.complete) reply.header('connection', 'close');
}

type Refused = Exclude<IngestOutcome, { kind: 'accepted' | 'duplicate' | 'handshake' }>;

/** Returns the answer to a delivery that was not accepted. It reveals neither whether the webhook exists nor why a credential is wrong. */
function refusalOf(outcome: Refused): Refusal {
  switch (outcome.kind) {
    case 'not_found':
      return refuse('resource_not_found', { detail: 'There is no webhook at this URL, or it is disabled.' });
    case 'rate_limited':
      return refuse('resource_unavailable', {
        detail:
          'The webhook takes no more requests of this kind for now. Send this one again after Retry-After seconds.',
        headers: { 'retry-after': String(Math.ceil(outcome.retryAfterMs / 1000)) },
      });
    case 'busy':
      return tooBusy('Too many deliveries wait already.');
    case 'unauthenticated':
      return refuse('authentication_required', {
        detail: 'The delivery does not carry the credential of this webhook.',
        // Some senders send their password only after an answer with this header.
        headers: { 'www-authenticate': 'Bearer, Basic realm="webhook"' },
      });
    case 'invalid_json':
      return refuse('invalid_request', { detail: `${outcome.why}; send one JSON value in UTF-8.` });
    case 'cut':
    case 'too_large':
    case 'too_slow':
      return refusalOfBody(outcome.kind, maxWebhookBytes);
  }
}
