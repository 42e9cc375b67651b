/** A request whose sender is not verified yet because its body has not arrived. */
interface Unproved {
  readonly uid: string;
  /** Closes the connection. */
  readonly cut: () => void;
}

/** Limits the requests of unverified senders: above the limit, each new request closes the oldest request. */
interface UnprovedSenders {
  /**
   * Adds a request to a webhook. If there are too many requests, closes the oldest request of all webhooks. Returns the function that
   * removes the request.
   */
  add(uid: string, cut: () => void): () => void;
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
    add: (uid, cut) => {
      if (senders.size >= max) cutOldest();
      const sender = { uid, cut };
      senders.add(sender);
      return () => void senders.delete(sender);
    },
    cutOldest,
  };
}
