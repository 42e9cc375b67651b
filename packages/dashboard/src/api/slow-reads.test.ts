import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { expect, test } from 'vitest';
import { slowRead } from './slow-reads.ts';

/** Returns the query of a screen with this answer and freshness. */
async function queryOf(answer: () => unknown, staleTime?: number) {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const options = { queryKey: ['a'], queryFn: answer, ...(staleTime === undefined ? {} : { staleTime }) };
  const stop = new QueryObserver(queries, options).subscribe(() => undefined);
  const query = queries.getQueryCache().find({ queryKey: ['a'] });
  if (query === undefined) throw new Error('there is no query');
  await query.promise?.catch(() => undefined);
  const ms = slowRead(query);
  stop();
  return ms;
}

test('a query is read again after 15 s, or after the time during which its data is fresh', async () => {
  expect(await queryOf(() => 1)).toBe(15_000);
  expect(await queryOf(() => 1, 60_000)).toBe(60_000);
  expect(await queryOf(() => 1, Number.POSITIVE_INFINITY)).toBe(false);
  expect(await queryOf(() => ({ pages: [1] }))).toBe(15_000);
});

test('several pages of a list are not read again, so that the rows keep their places', async () => {
  expect(await queryOf(() => ({ pages: [1, 2] }))).toBe(false);
});

test('a query that failed is read again, also if its data would be fresh for ever', async () => {
  expect(await queryOf(() => Promise.reject(new Error('down')), Number.POSITIVE_INFINITY)).toBe(15_000);
});
