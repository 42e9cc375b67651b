/** A cache of values by name, with a maximum total size in bytes. The least recently used value is removed first. */
export interface Cache<T> {
  get(name: string): T | undefined;
  set(name: string, value: T, bytes: number): void;
  delete(name: string): void;
}

export function makeCache<T>(maxBytes: number): Cache<T> {
  // Set the name again, because a Map keeps the order in which names were set.
  const entries = new Map<string, { readonly value: T; readonly bytes: number }>();
  let total = 0;
  const remove = (name: string): void => {
    total -= entries.get(name)?.bytes ?? 0;
    entries.delete(name);
  };
  return {
    get: (name) => {
      const entry = entries.get(name);
      if (entry === undefined) return undefined;
      entries.delete(name);
      entries.set(name, entry);
      return entry.value;
    },
    set: (name, value, bytes) => {
      remove(name);
      if (bytes > maxBytes) return;
      entries.set(name, { value, bytes });
      total += bytes;
      for (const [oldest] of entries) {
        if (total <= maxBytes) break;
        remove(oldest);
      }
    },
    delete: remove,
  };
}
