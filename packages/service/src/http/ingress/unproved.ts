/** A request whose sender has not proved itself, and whose body is not here yet. */
interface Unproved {
  readonly uid: string;
  /** Ends the connection. */
  readonly cut: () => void;
}

/** Bounds the requests of senders that have not proved themselves: for a new one the oldest is cut. */
export interface UnprovedSenders {
  /** Adds a request to a webhook, and cuts the oldest of all where there are too many. Returns the function that removes it. */
  add(uid: string, cut: () => void): () => void;
  /** Cuts the oldest one; with `uid`, the oldest of this webhook. False: there is none. */
  cutOldest(uid?: string): boolean;
}

/**
 * Makes the list of a process. A body that comes at the pace of a network is read within moments, so that the oldest are those that
 * are sent slowly on purpose. Refusing new ones instead would let slow senders keep everybody else out.
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
