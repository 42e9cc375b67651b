/** The bodies that an owner holds. */
export interface Held {
  bytes: number;
  requests: number;
  /** Requests that wait for room. */
  waiting: number;
}

/** The room that each owner of one kind (team, execution) holds. Owners without room are removed. */
export function holders() {
  const held = new Map<string, Held>();
  const none: Readonly<Held> = { bytes: 0, requests: 0, waiting: 0 };
  return {
    of: (id: string): Readonly<Held> => held.get(id) ?? none,
    change: (id: string, by: Partial<Held>): void => {
      const now = held.get(id) ?? { ...none };
      now.bytes += by.bytes ?? 0;
      now.requests += by.requests ?? 0;
      now.waiting += by.waiting ?? 0;
      if (now.requests === 0 && now.waiting === 0) held.delete(id);
      else held.set(id, now);
    },
  };
}
