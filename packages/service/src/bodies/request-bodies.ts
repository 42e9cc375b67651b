import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BodyBudget, BodyOwner, Place } from './body-budget.ts';
import { announcedBytes, type BodyPace, type BodyRead, defaultBodyPace, readBody } from './read-body.ts';

/** A body that holds room in the budget until the answer was sent or the client is gone. */
export type HeldBody =
  | { readonly kind: 'body'; readonly bytes: Buffer; readonly place: Place }
  | { readonly kind: 'busy' }
  | Exclude<BodyRead, { readonly kind: 'body' }>;

/** Seconds after which a client should repeat a request that was `busy`. */
export const busyRetrySeconds = 2;

export interface RequestBody {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly owner: BodyOwner;
  readonly maxBytes: number;
  readonly pace?: BodyPace;
}

/** Reads the body of a request when there is room for it. Until then nothing is read from the sender. */
export async function holdBody(
  bodies: BodyBudget,
  { request, response, owner, maxBytes, pace = defaultBodyPace }: RequestBody,
): Promise<HeldBody> {
  const announced = announcedBytes(request.headers['content-length']);
  if (announced !== undefined && announced > maxBytes) return { kind: 'too_large' };
  const over = new AbortController();
  response.once('close', () => over.abort());
  // No `close` comes from a client that was gone before.
  if (response.destroyed) over.abort();
  const place = await bodies.enter(owner, announced ?? maxBytes, over.signal);
  if (place === 'busy') return { kind: 'busy' };
  if (place === 'gone') return { kind: 'cut' };
  if (over.signal.aborted) place.release();
  else over.signal.addEventListener('abort', place.release);
  const read = await readBody(request, { announced, maxBytes, pace });
  return read.kind === 'body' ? { ...read, place } : read;
}
