/** The endpoint to which GitHub sends the events of Apps. */
import { maxGithubEventBytes } from '@runyard/contract/limits';
import { github } from '@runyard/contract/webhooks/signature-schemes/of-body';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type BodyLimits, makeBodyBudget } from '../../../platform/bodies/body-budget.ts';
import type { BodyPace } from '../../../platform/bodies/read-body.ts';
import { count } from '../../../platform/metrics/record.ts';
import { type Refusal, refuse, tooBusy } from '../../../platform/serving/refusal.ts';
import { isUid } from '../../../team/access/teams/uid.ts';
import { openAppDirectory } from '../../../triggers/github/app-directory.ts';
import { isUsedEvent, type ReceiveDeps, type ReceiveOutcome, receiveEvent } from '../../../triggers/github/receive.ts';
import { verifySignature } from '../../../triggers/webhooks/ingest/authenticate.ts';
import { parsePayload } from '../../../triggers/webhooks/ingest/read-request.ts';
import type { RefuseWhileFull } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { limitRequests, listUnprovedSenders, refusalOfBody } from './unproved-senders.ts';

const mb = 1024 * 1024;
/** Memory for the bodies of events. `perTeam` is the limit of one App. Most events have some tens of kilobytes. */
const room: BodyLimits = {
  smallBytes: 256 * 1024,
  small: { total: 8 * mb, perTeam: 4 * mb, perExecution: 4 * mb },
  large: { total: 2 * maxGithubEventBytes, perTeam: maxGithubEventBytes, perExecution: maxGithubEventBytes },
  requestsPerExecution: 100,
  waiting: 32,
  waitMs: 5_000,
};
/** GitHub waits 10 s for an answer, so a body that takes longer is lost anyway. */
const pace: BodyPace = { graceMs: 5_000, bytesPerSecond: 5 * mb };
/** Limits of the events in progress, in total and of one App. */
const maxInFlight = 200;
const maxInFlightOfApp = 50;

type Outcome =
  | ReceiveOutcome
  | { readonly kind: 'not_found' | 'unauthenticated' | 'cut' | 'too_large' | 'too_slow' | 'invalid' };

const headerOf = (request: FastifyRequest, name: string): string => {
  const value = request.raw.headers[name];
  return typeof value === 'string' ? value : '';
};

/** Matches names of events and ids of deliveries. */
const word = /^[A-Za-z0-9_-]{1,100}$/;

/** Registers `POST /webhooks/github/{uid}`. `deps.write` writes deliveries. */
export function registerGithubIngress(app: FastifyInstance, deps: ServiceDeps, receive: ReceiveDeps): void {
  const bodies = makeBodyBudget(room);
  const findApp = openAppDirectory(deps.db, deps.vault);
  const refuseWhileFull = app.getDecorator<RefuseWhileFull>('refuseWhileFull');
  // The signature is checked when the whole body has arrived. Until then, a new event takes the place of the oldest one, so that slow
  // senders lock out nobody.
  const unproved = listUnprovedSenders(maxInFlight);
  const enter = limitRequests({ max: maxInFlight, maxOfOne: maxInFlightOfApp }, unproved);

  const take = async (request: FastifyRequest, reply: FastifyReply): Promise<Outcome> => {
    const { uid = '' } = request.params as { uid?: string };
    if (!isUid(uid)) return { kind: 'not_found' };
    if (!enter(uid, reply)) return { kind: 'busy' };
    await refuseWhileFull();
    const known = await findApp(uid);
    if (!known) return { kind: 'not_found' };
    const name = headerOf(request, 'x-github-event');
    const guid = headerOf(request, 'x-github-delivery');
    if (!word.test(name) || !word.test(guid)) return { kind: 'invalid' };
    // The answer to an unused event is the same with any body, so its body is not read.
    if (!isUsedEvent(name)) return { kind: 'ignored', reason: 'nothing uses such events' };
    const { raw } = request;
    const owner = { teamId: uid };
    const held = { request: raw, response: reply.raw, owner, maxBytes: maxGithubEventBytes, pace };
    const body = await unproved.read(uid, bodies, held, true);
    if (body.kind !== 'body') return { kind: body.kind };
    const { bytes } = body;
    if (!verifySignature(github, { headers: raw.headers, body: bytes }, [known.webhookSecret], Date.now()))
      return { kind: 'unauthenticated' };
    const payload = parsePayload(bytes);
    if (!payload.ok) return { kind: 'invalid' };
    return await receiveEvent(receive, { app: known.app, name, guid, body: bytes, payload: payload.value });
  };

  const onRequest = async (request: FastifyRequest, reply: FastifyReply) => {
    const outcome = await take(request, reply).finally(() => {
      if (!request.raw.complete) reply.header('connection', 'close');
    });
    count('runyard_webhook_deliveries_total', { result: outcome.kind, scheme: 'github_app' });
    reply.header('cache-control', 'no-store').type('application/json; charset=utf-8');
    switch (outcome.kind) {
      case 'accepted':
      case 'duplicate':
        return reply.code(202).send(JSON.stringify({ delivery_id: outcome.deliveryId }));
      case 'ignored':
        return reply.code(202).send(JSON.stringify({ ignored: outcome.reason }));
      default:
        throw refusalOf(outcome);
    }
  };
  app.post('/webhooks/github/:uid', { onRequest }, async () =>
    Promise.reject(new Error('the ingress answers before the handler')),
  );
}

function refusalOf(outcome: Exclude<Outcome, { kind: 'accepted' | 'duplicate' | 'ignored' }>): Refusal {
  switch (outcome.kind) {
    case 'not_found':
      return refuse('resource_not_found', { detail: 'There is no GitHub App at this URL.' });
    case 'rate_limited':
      return refuse('resource_unavailable', {
        detail: 'The repository or the account has sent too many events. The service reads this one later.',
        headers: { 'retry-after': String(Math.ceil(outcome.retryAfterMs / 1000)) },
      });
    case 'busy':
      return tooBusy('Too many events wait already.');
    case 'away':
      return refuse('resource_unavailable', {
        detail: 'GitHub does not show the pull request now. The service reads this event later.',
      });
    case 'unauthenticated':
      return refuse('authentication_required', { detail: 'The signature is not that of the App.' });
    case 'invalid':
      return refuse('invalid_request', { detail: 'This is not an event of GitHub.' });
    case 'cut':
    case 'too_large':
    case 'too_slow':
      return refusalOfBody(outcome.kind, maxGithubEventBytes);
  }
}
