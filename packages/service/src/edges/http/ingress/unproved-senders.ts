import type { FastifyReply } from 'fastify';
import type { BodyBudget, Place } from '../../../platform/bodies/body-budget.ts';
import { type HeldBody, holdBody, type RequestBody } from '../../../platform/bodies/request-bodies.ts';
import { type Refusal, refuse } from '../../../platform/serving/refusal.ts';

/** A request whose sender is not verified yet because its body has not arrived. */
interface Unproved {
  readonly uid: string;
  /** Closes the connection. */
  readonly cut: () => void;
}

/** Limits the requests of unverified senders: above the limit, each new request closes the oldest request. */
export interface UnprovedSenders {
  /**
   * Reads the body of a request to a webhook. If there are too many requests, closes the oldest request of all webhooks. `takesPlaces`: if
   * there is no memory for the body, the oldest requests are closed too.
   */
  read(uid: string, bodies: BodyBudget, body: RequestBody, takesPlaces: boolean): Promise<HeldBody>;
  /** Closes the oldest request; with `uid`, the oldest of this webhook. Returns false if there is no such request. */
  cutOldest(uid?: string): boolean;
}

/**
 * Creates the list of a process. A body that arrives at network speed is read within moments, so the oldest requests are deliberately slow.
 * If new requests were refused instead, slow senders would lock out all others.
 */
export function listUnprovedSenders(max: number): UnprovedSenders {
  const senders = new Set<Unproved>();
  const cutOldest = (uid?: string): boolean => {
    for (const sender of senders) {
      if (uid !== undefined && sender.uid !== uid) continue;
      senders.delete(sender);
      sender.cut();
      return true;
    }
    return false;
  };
  return {
    read: async (uid, bodies, body, takesPlaces) => {
      if (senders.size >= max) cutOldest();
      let place: Place | undefined;
      const cut = () => {
        place?.release();
        body.request.destroy();
      };
      const sender = { uid, cut };
      senders.add(sender);
      try {
        return await holdBody(bodies, {
          ...body,
          ...(takesPlaces ? { giveUpOther: () => cutOldest(uid) || cutOldest() } : {}),
          onPlace: (taken) => {
            place = taken;
          },
        });
      } finally {
        senders.delete(sender);
      }
    },
    cutOldest,
  };
}

/**
 * Returns a function that counts a request to a webhook until its answer was sent. It returns false if `max` requests are in progress, or
 * `maxOfOne` to this webhook, and no unverified sender can be closed for it.
 */
export function limitRequests(
  { max, maxOfOne }: { readonly max: number; readonly maxOfOne: number },
  unproved: UnprovedSenders,
): (uid: string, reply: FastifyReply) => boolean {
  const inFlight = new Map<string, number>();
  let total = 0;
  return (uid, reply) => {
    const own = inFlight.get(uid) ?? 0;
    if (own >= maxOfOne && !unproved.cutOldest(uid)) return false;
    if (total >= max && !unproved.cutOldest()) return false;
    total += 1;
    inFlight.set(uid, own + 1);
    reply.raw.once('close', () => {
      total -= 1;
      const left = (inFlight.get(uid) ?? 1) - 1;
      if (left > 0) inFlight.set(uid, left);
      else inFlight.delete(uid);
    });
    return true;
  };
}

/** Returns the answer to a body that was not read completely. */
export function refusalOfBody(kind: 'cut' | 'too_large' | 'too_slow', maxBytes: number): Refusal {
  switch (kind) {
    case 'cut':
      return refuse('invalid_request', { detail: 'The number of bytes in the body differs from its Content-Length.' });
    case 'too_large':
      return refuse('invalid_request', { status: 413, detail: `The body is larger than ${maxBytes} bytes.` });
    case 'too_slow':
      return refuse('invalid_request', { status: 408, detail: 'The body came too slowly.' });
  }
}
