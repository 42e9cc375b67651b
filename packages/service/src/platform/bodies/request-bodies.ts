import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BodyBudget, BodyOwner, Place } from './body-budget.ts';
import { announcedBytes, type BodyPace, type BodyRead, defaultBodyPace, readBody } from './read-body.ts';

/** A body that holds memory of the budget until the answer is sent or the client disconnects. */
export type HeldBody =
  | { readonly kind: 'body'; readonly bytes: Buffer; readonly place: Place }
  | { readonly kind: 'busy' }
  | Exclude<BodyRead, { readonly kind: 'body' }>;

export interface RequestBody {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly owner: BodyOwner;
  readonly maxBytes: number;
  readonly pace?: BodyPace;
  /** Additional bytes that the body takes because it is compressed. Default: 0. */
  readonly moreBytes?: number;
  /**
   * Makes another request give up its memory. Returns false if no other request can give up memory; then this request waits. Absent:
   * this request waits at once.
   */
  readonly giveUpOther?: () => boolean;
  /** Called with the memory of the body before the body is read. */
  readonly onPlace?: (place: Place) => void;
}

/** Reason of an aborted wait. All aborted waits share this error, because each new error would record a stack. */
const closed = new Error('The connection of the request was closed.');

/** Waits for memory. Stops waiting when the connection of the client is closed. */
async function waitForRoom(
  bodies: BodyBudget,
  { response, owner }: RequestBody,
  bytes: number,
): Promise<Place | 'busy' | 'gone'> {
  const over = new AbortController();
  const onClose = () => over.abort(closed);
  response.once('close', onClose);
  const place = await bodies.enter(owner, bytes, over.signal);
  response.off('close', onClose);
  return place;
}

/** Takes memory at once. If there is not enough, makes other requests give up their memory. */
function enterNow(bodies: BodyBudget, { owner, giveUpOther }: RequestBody, bytes: number): Place | undefined {
  let place = bodies.tryEnter(owner, bytes);
  while (!place && giveUpOther?.()) place = bodies.tryEnter(owner, bytes);
  return place;
}

/**
 * Reads the body of a request when there is memory for it. Until then, nothing is read from the sender.
 */
export async function holdBody(bodies: BodyBudget, body: RequestBody): Promise<HeldBody> {
  const { request, response, maxBytes, pace = defaultBodyPace } = body;
  const announced = announcedBytes(request.headers['content-length']);
  if (announced !== undefined && announced > maxBytes) return { kind: 'too_large' };
  // Do not wait for memory if the client has already disconnected, because no `close` event would end the wait.
  if (response.destroyed) return { kind: 'cut' };
  const bytes = (announced ?? maxBytes) + (body.moreBytes ?? 0);
  const place = enterNow(bodies, body, bytes) ?? (await waitForRoom(bodies, body, bytes));
  if (place === 'busy') return { kind: 'busy' };
  if (place === 'gone') return { kind: 'cut' };
  body.onPlace?.(place);
  if (response.destroyed) place.release();
  else response.once('close', place.release);
  const read = await readBody(request, { announced, maxBytes, pace });
  return read.kind === 'body' ? { ...read, place } : read;
}
