/**
 * Accepts or refuses a delivery. Does the checks in the order of the contract ("Ingress rules"), and writes the delivery in one
 * transaction, alone or with other deliveries.
 */
import { createHmac, randomUUIDv7 } from 'node:crypto';
import { maxWebhookBytes } from '@runyard/contract/limits';
import { defaultDuplicateWindowSeconds } from '@runyard/contract/webhooks/webhook-rules';
import type { WebhookDeliveryLabel } from '@runyard/contract/webhooks/webhooks';
import type { Database } from '../../../platform/store/database/database.ts';
import {
  authenticate,
  type Credentials,
  checkToken,
  faultOfEvent,
  hasRecentMember,
  isSigned,
  memberAt,
} from '../../webhooks/ingest/authenticate.ts';
import type { KnownWebhook, WebhookDirectory } from '../../webhooks/ingest/directory.ts';
import { eventHeadersOf, eventOf, identify, readPayload, signedHashOf } from '../../webhooks/ingest/read-request.ts';
import { type NotWritten, writeRejection } from '../../webhooks/ingest/write-rejection.ts';
import type { DeliveryWriter, Gate } from './delivery-queue.ts';

export interface IngestDeps {
  readonly db: Database;
  readonly directory: WebhookDirectory;
  readonly gate: Gate;
  readonly write: DeliveryWriter;
}

/**
 * The proof of the sender before the body of a request is read. `right`: the request has the right token. `open`: the request has a
 * signature, which can be checked only with the body. `wrong`: the request has no token, a wrong token, or no signature.
 */
export type Proof = 'right' | 'open' | 'wrong';

/** The result of reading a body. `too_slow`, `cut`: the body did not arrive completely. `busy`: there is no memory for the body now. */
export type DeliveredBody =
  | {
      readonly kind: 'body';
      readonly bytes: Buffer;
      /**
       * Called when the signature was right. The body then no longer uses the memory for senders that have proved nothing. Absent: the
       * body does not use that memory.
       */
      readonly prove?: () => void;
    }
  | { readonly kind: 'too_large' | 'too_slow' | 'cut' | 'busy' };

/** A request of a sender. */
export interface IngestRequest extends Credentials {
  readonly uid: string;
  /** The query of the URL, without its question mark. */
  readonly query: string;
  /** Size of the body as the request announces it, in bytes; undefined: the body comes in chunks. */
  readonly announcedBytes: number | undefined;
  /** Reads the body, of which at most 256 KB are accepted. A part of the memory is only for senders that have proved who they are. */
  readBody(proof: Proof): Promise<DeliveredBody>;
}

/**
 * `accepted` and `duplicate` become 202. `handshake` becomes 200 with the text that a provider expects when it checks the URL. All
 * other outcomes are refusals.
 */
export type IngestOutcome =
  | { readonly kind: 'accepted' | 'duplicate'; readonly deliveryId: string }
  | { readonly kind: 'handshake'; readonly answer: Extract<HandshakeAnswer, { kind: 'answer' }> }
  /** 404: the webhook is unknown, disabled or deleted. */
  | { readonly kind: 'not_found' }
  /** 429 */
  | { readonly kind: 'rate_limited'; readonly retryAfterMs: number }
  | { readonly kind: 'busy' }
  /** 401 */
  | { readonly kind: 'unauthenticated' }
  /** 400 */
  | { readonly kind: 'invalid_json'; readonly why: string }
  | { readonly kind: 'cut' }
  /** 413 */
  | { readonly kind: 'too_large' }
  /** 408 */
  | { readonly kind: 'too_slow' };

/** If the webhook changes while a delivery is checked, the check begins again. After this many rounds, the delivery is refused as `busy`. */
const maxRounds = 5;

/**
 * Accepts or refuses a delivery. All changes are committed when the function returns. `nowMs` returns the time with which the age of a
 * signature is checked.
 */
export async function ingest(deps: IngestDeps, request: IngestRequest, nowMs: () => number): Promise<IngestOutcome> {
  let body: DeliveredBody | undefined;
  for (let round = 0; round < maxRounds; round += 1) {
    const webhook = deps.directory.known(request.uid) ?? (await deps.gate(() => deps.directory.find(request.uid)));
    if (webhook === 'busy') return { kind: 'busy' };
    if (webhook === null) return { kind: 'not_found' };
    const waitMs = webhook.fullUntil.deliveries - performance.now();
    if (waitMs > 0) return { kind: 'rate_limited', retryAfterMs: waitMs };
    body ??= await request.readBody(proofOf(webhook, request));
    const outcome = await take(deps, webhook, request, body, nowMs);
    if (outcome !== 'changed') return outcome;
    deps.directory.forget(request.uid);
  }
  return { kind: 'busy' };
}

function proofOf(webhook: KnownWebhook, request: IngestRequest): Proof {
  const hasToken = checkToken(webhook, request);
  if (hasToken === undefined) return isSigned(webhook, request) ? 'open' : 'wrong';
  return hasToken ? 'right' : 'wrong';
}

/** A refused delivery. `why`: the reason that the log of the webhook shows. */
interface Refused {
  readonly label: Exclude<WebhookDeliveryLabel, 'ACCEPTED' | 'DUPLICATE'>;
  readonly sizeBytes: number;
  readonly why?: string | undefined;
}

async function take(
  deps: IngestDeps,
  webhook: KnownWebhook,
  request: IngestRequest,
  body: DeliveredBody,
  nowMs: () => number,
): Promise<IngestOutcome | 'changed'> {
  const { sender, rules } = webhook;
  const refuse = (refused: Refused) => reject(deps, webhook, refused);
  const tooLarge = (sizeBytes: number) => refuse({ label: 'REJECTED_TOO_LARGE', sizeBytes, why: whyTooLarge(webhook) });
  if (body.kind === 'too_large') return await tooLarge(sizeOf(request));
  if (body.kind !== 'body') return { kind: body.kind };
  const { bytes } = body;
  const { headers } = request;
  const sizeBytes = bytes.length;
  if (!authenticate(webhook, request, bytes, nowMs())) return await refuse({ label: 'REJECTED_AUTH', sizeBytes });
  body.prove?.();
  const query = queryOfHandshake(webhook, request.query);
  // If a provider sends the handshake in the query, it sends no body. Then store the query as the payload.
  const received = query === undefined ? bytes : Buffer.from(JSON.stringify({ [query.name]: query.value }));
  const payload = await readPayload({ headers: query === undefined ? headers : {}, body: received, sender });
  if (payload.kind === 'too_large') return await tooLarge(maxWebhookBytes + 1);
  if (payload.kind === 'not_json') return await refuse({ label: 'REJECTED_INVALID_JSON', sizeBytes, why: payload.why });
  const { json, value } = payload;
  const event = eventOf(webhook, headers);
  if (webhook.authMode === 'signature' && sender !== null) {
    if (!hasRecentMember(sender, value, nowMs()))
      return await refuse({
        label: 'REJECTED_AUTH',
        sizeBytes,
        why: `the time in ${sender.timestampMember} is not recent`,
      });
    const why = event === null ? undefined : faultOfEvent(sender, event, value, rules.event_header);
    if (why !== undefined) return await refuse({ label: 'REJECTED_AUTH', sizeBytes, why });
  }
  const handshake: HandshakeAnswer | undefined =
    query === undefined ? answerHandshake(webhook, value) : { kind: 'answer', type: 'text/plain', text: query.value };
  const id = randomUUIDv7();
  const windowSeconds = rules.duplicate_window_seconds ?? defaultDuplicateWindowSeconds;
  const hash = handshake === undefined ? signedHashOf(webhook, headers, bytes) : null;
  const written = await deps.write({
    webhook,
    id,
    body: json,
    payload: value,
    identity: identify(webhook, headers, received, value),
    event,
    headers: eventHeadersOf(webhook, headers),
    ...(hash === null || windowSeconds === 0 ? {} : { sameBytes: { hash, windowSeconds } }),
    ...(handshake === undefined ? {} : { startsNothing: true }),
    ...(handshake?.kind === 'confirm' ? { reason: handshake.reason } : {}),
  });
  if (written === 'busy' || written.kind === 'changed' || written.kind === 'full')
    return refusalOf(written) ?? { kind: 'busy' };
  return handshake?.kind === 'answer'
    ? { kind: 'handshake', answer: handshake }
    : { kind: written.kind, deliveryId: id };
}

/** Returns the reason that the log shows for a delivery which is too large. */
const whyTooLarge = ({ sender }: KnownWebhook): string =>
  `a delivery has at most ${maxWebhookBytes} bytes, also when it is decompressed. ${sender?.ifTooLarge ?? 'Configure the sender so that it sends less'}`;

/**
 * Returns the number of bytes that the log shows for a delivery which is too large. The size of a body in chunks is not known, because
 * it was not read to its end.
 */
const sizeOf = ({ announcedBytes = maxWebhookBytes + 1 }: IngestRequest): number =>
  Math.min(announcedBytes, Number.MAX_SAFE_INTEGER);

/** Writes a refused delivery to the log of the webhook. Refused deliveries have a separate budget if the sender was not verified. */
async function reject(
  deps: IngestDeps,
  webhook: KnownWebhook,
  { label, sizeBytes, why }: Refused,
): Promise<IngestOutcome | 'changed'> {
  const waitMs = label === 'REJECTED_INVALID_JSON' ? 0 : webhook.fullUntil.rejections - performance.now();
  if (waitMs > 0) return { kind: 'rate_limited', retryAfterMs: waitMs };
  const entry = { id: randomUUIDv7(), sizeBytes, reason: why ?? null };
  const refused = refusalOf(await deps.gate(() => writeRejection(deps.db, webhook, entry, label)));
  if (refused !== null) return refused;
  switch (label) {
    case 'REJECTED_AUTH':
      return { kind: 'unauthenticated' };
    case 'REJECTED_TOO_LARGE':
      return { kind: 'too_large' };
    case 'REJECTED_INVALID_JSON':
      return { kind: 'invalid_json', why: why ?? 'the body is not valid JSON' };
  }
}

function refusalOf(refused: NotWritten | 'busy' | null): IngestOutcome | 'changed' | null {
  if (refused === null) return null;
  if (refused === 'busy') return { kind: 'busy' };
  return refused.kind === 'changed' ? 'changed' : { kind: 'rate_limited', retryAfterMs: refused.waitMs };
}

/** `answer`: the answer that a provider expects. `confirm`: `reason` tells a person what to do to confirm the webhook. */
type HandshakeAnswer =
  | { readonly kind: 'answer'; readonly type: 'application/json' | 'text/plain'; readonly text: string }
  | { readonly kind: 'confirm'; readonly reason: string };

/** Largest number of characters of a value that an answer repeats. */
const maxLength = 4_000;

/** Returns the value in the query of a handshake. Returns undefined if the request is not a handshake in the query. */
function queryOfHandshake({ sender }: KnownWebhook, query: string): { name: string; value: string } | undefined {
  const handshake = sender?.handshake;
  if (handshake === undefined || !('query' in handshake)) return undefined;
  const value = new URLSearchParams(query).get(handshake.query);
  return value === null || value.length > maxLength ? undefined : { name: handshake.query, value };
}

/** Returns how to answer a handshake. Returns undefined if the body is a normal delivery. An HMAC in the answer uses the current secret. */
function answerHandshake({ sender, secrets }: KnownWebhook, body: unknown): HandshakeAnswer | undefined {
  const handshake = sender?.handshake;
  if (handshake === undefined || 'query' in handshake) return undefined;
  const [path, expected] = handshake.when;
  if (memberAt(body, path) !== expected) return undefined;
  if ('confirm' in handshake) return { kind: 'confirm', reason: handshake.confirm };
  const value = memberAt(body, handshake.value);
  if (typeof value !== 'string' || value.length > maxLength) return undefined;
  const hmac = createHmac('sha256', secrets()[0] ?? '')
    .update(value)
    .digest('hex');
  const answer = Object.entries(handshake.answer).map(([name, text]) => [
    name,
    text.replace(/\{value\}|\{hmac\}/g, (part) => (part === '{hmac}' ? hmac : value)),
  ]);
  return { kind: 'answer', type: 'application/json', text: JSON.stringify(Object.fromEntries(answer)) };
}
