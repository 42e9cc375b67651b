import { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { expect, test, vi } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { createTestDatabase } from '../../../../test/database.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { findOrRefuse } from './list.ts';
import { whileFewAreSlow } from './slow-lists.ts';

const database = closeAtEnd(await createTestDatabase());

/** A list that is built to be slow. */
const slow = (tx: Queryable) => tx.query('SELECT pg_sleep(20)');

test('a statement that takes too long is refused with the name of the filter and the advice to bound the creation', async () => {
  const query = ListRunsQuery.parse({ metadata: { stage: 'prod' }, sort_by: 'title' });
  const refusal = await findOrRefuse(query, () => whileFewAreSlow(database.db, 'a team', slow, 50));
  expect(refusal).toMatchObject({
    kind: 'invalid',
    faults: [{ path: 'metadata', message: expect.stringMatching(/add created_after/) }],
  });
});

test('a team that repeats slow lists has two of them at once, and another team does not wait for it', async () => {
  let running = 0;
  let most = 0;
  const counted = async (tx: Queryable) => {
    running += 1;
    most = Math.max(most, running);
    await tx.query('SELECT pg_sleep(0.1)');
    running -= 1;
  };
  const repeated = Array.from({ length: 8 }, () => whileFewAreSlow(database.db, 'repeating', counted, 20_000));
  await whileFewAreSlow(database.db, 'other', async (tx) => await tx.query('SELECT'), 20_000);
  await vi.waitUntil(() => running === 2);
  await Promise.all(repeated);
  expect(most).toBe(2);
});

test('a list that waits too long for the others of its team is refused, and leaves its place', async () => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const others = [1, 2].map(() => whileFewAreSlow(database.db, 'busy', () => held, 20_000));
  await expect(whileFewAreSlow(database.db, 'busy', slow, 20)).rejects.toMatchObject({ name: 'ListTooSlow' });
  release();
  await Promise.all(others);
  expect(await whileFewAreSlow(database.db, 'busy', async () => 'next', 1_000)).toBe('next');
});
