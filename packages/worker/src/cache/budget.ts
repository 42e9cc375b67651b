/** Objects are used for at most this time, in milliseconds, because the programs of the machine have also affected them. */
export const longestMs = 7 * 24 * 60 * 60_000;

/** An object that uses space of the budget. */
export interface Counted {
  readonly bytes: number;
  /** Unix time in milliseconds. */
  usedAt: number;
  /** Removes the object from the disk. Called once, when the space is needed or the object is unusable. */
  readonly remove: () => Promise<void>;
}

/** The disk space that all objects of a worker's cache share. */
export interface Budget {
  readonly maxBytes: number;
  /** Returns an object on the disk. */
  get(key: string): Counted | undefined;
  /** Counts an object that is on the disk. An earlier object with this key is no longer counted. */
  add(key: string, object: Counted): void;
  /** Removes the object, and no longer counts it. */
  forget(key: string): Promise<void>;
  /**
   * Reserves `bytes` for an object that is being written. If the space is full, first removes the least recently used objects. If this is
   * not enough, returns false and reserves nothing.
   */
  reserve(bytes: number): Promise<boolean>;
  /** Gives reserved space back, also when the object is complete and counted with `add`. */
  release(bytes: number): void;
}

export function openBudget(maxBytes: number): Budget {
  const objects = new Map<string, Counted>();
  let used = 0;

  const forget = async (key: string): Promise<void> => {
    const object = objects.get(key);
    if (object === undefined) return;
    objects.delete(key);
    await object.remove();
    used -= object.bytes;
  };

  return {
    maxBytes,
    get: (key) => objects.get(key),
    add(key, object) {
      used += object.bytes - (objects.get(key)?.bytes ?? 0);
      objects.set(key, object);
    },
    forget,
    async reserve(bytes) {
      used += bytes;
      while (used > maxBytes) {
        const [oldest] = [...objects].sort(([, a], [, b]) => a.usedAt - b.usedAt);
        if (oldest === undefined) {
          used -= bytes;
          return false;
        }
        await forget(oldest[0]);
      }
      return true;
    },
    release(bytes) {
      used -= bytes;
    },
  };
}
