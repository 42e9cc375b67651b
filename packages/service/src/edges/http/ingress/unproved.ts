/** A request whose sender is not verified yet, and whose body has not arrived yet. */
interface Unproved {
  readonly uid: string;
  /** Closes the connection. */
  readonly cut: () => void;
}

/** Limits the requests of unverified senders: above the limit, a new request closes the oldest one. */
export interface UnprovedSenders {
  /** Adds a request to a webhook, and closes the oldest of all if there are too many. Returns the function that removes it. */
  add(uid: string, cut: () => void): () => void;
  /** Closes the oldest request; with `uid`, the oldest of this webhook. False: there is none. */
  cutOldest(uid?: string): boolean;
}

/**
 * Creates the list of a process. A body that arrives at the speed of a network is read within moments, so the oldest requests are those
 * that are slow on purpose. Refusing new ones instead would let slow senders lock all others out.
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
