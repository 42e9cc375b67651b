/**
 * Calls `load` for the items, for at most `limit` of them at the same time, and yields the results in the order of the items. Throws the
 * first error, after the calls that are in progress have ended.
 */
export async function* loadInOrder<Item, Result>(
  items: AsyncIterable<Item>,
  limit: number,
  load: (item: Item) => Promise<Result>,
): AsyncGenerator<Result> {
  const loading: Promise<Result>[] = [];
  try {
    for await (const item of items) {
      const result = load(item);
      // The error is thrown when the result has its turn.
      result.catch(() => undefined);
      loading.push(result);
      if (loading.length < limit) continue;
      yield (await loading.shift()) as Result;
    }
    for (let next = loading.shift(); next !== undefined; next = loading.shift()) yield await next;
  } finally {
    await Promise.allSettled(loading);
  }
}
