/** Accepts a delivery: does the checks in the order of completions.md, and writes it in one transaction, alone or with others. */
import { randomUUIDv7 } from 'node:crypto';
import { maxWebhookBytes } from '@runyard/contract/limits';
import { schemes } from '@runyard/contract/signature-schemes/schemes';
import type { Database } from '../../../platform/store/database/database.ts';
import { authenticate, type Credentials, checkToken, isSigned } from './authenticate.ts';
import type { DeliveryWriter } from './delivery-writer.ts';
import type { KnownWebhook, WebhookDirectory } from './directory.ts';
import { eventHeadersOf } from './event-headers.ts';
import type { Gate } from './gate.ts';
import { eventOf, identify } from './identity.ts';
import { parsePayload } from './parse-payload.ts';
import type { NotWritten } from './write-deliveries.ts';
import { writeRejection } from './write-rejection.ts';

export interface IngestDeps {
  readonly db: Database;
  readonly directory: WebhookDirectory;
  readonly gate: Gate;
  readonly write: DeliveryWriter;
}

/**
 * Whether a sender has proved itself before its body is read. `open`: the body decides, because it is signed. `wrong`: it has no or a wrong
 * token, or no signature.
 */
export type Proof = 'right' | 'open' | 'wrong';

/** The result of reading a body. `too_slow`, `cut`: it did not arrive completely. `busy`: there is no room for it now. */
export type DeliveredBody =
  | {
      readonly kind: 'body';
      readonly bytes: Buffer;
      /** Moves the body to the room of proved senders. Absent: it is there. */
      readonly prove?: () => void;
    }
  | { readonly kind: 'too_large' | 'too_slow' | 'cut' | 'busy' };

/** A request of a sender. */
export interface IngestRequest extends Credentials {
  readonly uid: string;
  /** Announced size in bytes; undefined: the body comes in chunks. */
  readonly announcedBytes: number | undefined;
  /** Reads the body, at most 256 KB of it, in a room that proved senders share with no others. */
  readBody(proof: Proof): Promise<DeliveredBody>;
}

/**
 * `accepted`, `duplicate`: 202. `challenge`: 200 with the text that a provider expects when it checks the URL. All others are refusals.
 */
export type IngestOutcome =
  | { readonly kind: 'accepted' | 'duplicate'; readonly deliveryId: string }
  | { readonly kind: 'challenge'; readonly challenge: string }
  /** 404: unknown, disabled or deleted. */
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

/** Each change of the webhook while a delivery is checked needs one more round. */
const maxRounds = 5;

/** Accepts a delivery. All its changes are committed when it returns. `nowMs` is the clock by which signatures are too old. */
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

async function take(
  deps: IngestDeps,
  webhook: KnownWebhook,
  request: IngestRequest,
  body: DeliveredBody,
  nowMs: () => number,
): Promise<IngestOutcome | 'changed'> {
  if (body.kind === 'too_large') return await reject(deps, webhook, 'REJECTED_TOO_LARGE', sizeOf(request));
  if (body.kind !== 'body') return { kind: body.kind };
  const { bytes } = body;
  if (!authenticate(webhook, request, bytes, nowMs()))
    return await reject(deps, webhook, 'REJECTED_AUTH', bytes.length);
  body.prove?.();
  const id = randomUUIDv7();
  const payload = parsePayload(bytes);
  if (!payload.ok) {
    const entry = { id, sizeBytes: bytes.length };
    const refused = await deps.gate(() => writeRejection(deps.db, webhook, entry, 'REJECTED_INVALID_JSON'));
    return refusalOf(refused) ?? { kind: 'invalid_json', why: payload.why };
  }
  const challenge = challengeOf(webhook, payload.value);
  const written = await deps.write({
    webhook,
    id,
    body: bytes,
    payload: payload.value,
    identity: identify(webhook, request.headers, bytes),
    event: eventOf(webhook, request.headers),
    headers: eventHeadersOf(webhook, request.headers),
    ...(challenge === undefined ? {} : { startsNothing: true }),
  });
  if (written === 'busy' || written.kind === 'changed' || written.kind === 'full')
    return refusalOf(written) ?? { kind: 'busy' };
  return challenge === undefined ? { kind: written.kind, deliveryId: id } : { kind: 'challenge', challenge };
}

/** Number of bytes for the log. A body in chunks was not read to its end. */
const sizeOf = ({ announcedBytes = maxWebhookBytes + 1 }: IngestRequest): number =>
  Math.min(announcedBytes, Number.MAX_SAFE_INTEGER);

async function reject(
  deps: IngestDeps,
  webhook: KnownWebhook,
  label: 'REJECTED_AUTH' | 'REJECTED_TOO_LARGE',
  sizeBytes: number,
): Promise<IngestOutcome | 'changed'> {
  const waitMs = webhook.fullUntil.rejections - performance.now();
  if (waitMs > 0) return { kind: 'rate_limited', retryAfterMs: waitMs };
  const entry = { id: randomUUIDv7(), sizeBytes };
  const refused = await deps.gate(() => writeRejection(deps.db, webhook, entry, label));
  return refusalOf(refused) ?? { kind: label === 'REJECTED_AUTH' ? 'unauthenticated' : 'too_large' };
}

function refusalOf(refused: NotWritten | 'busy' | null): IngestOutcome | 'changed' | null {
  if (refused === null) return null;
  if (refused === 'busy') return { kind: 'busy' };
  return refused.kind === 'changed' ? 'changed' : { kind: 'rate_limited', retryAfterMs: refused.waitMs };
}

/** Returns the text that a provider expects when it checks the URL; undefined: the request is a delivery. */
function challengeOf({ scheme }: KnownWebhook, payload: unknown): string | undefined {
  const type = scheme === null ? undefined : schemes[scheme].handshakeType;
  if (type === undefined || typeof payload !== 'object' || payload === null) return undefined;
  const challenge: unknown = Reflect.get(payload, 'challenge');
  return Reflect.get(payload, 'type') === type && typeof challenge === 'string' ? challenge : undefined;
}
