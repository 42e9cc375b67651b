import type { WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import { expect, test } from 'vitest';
import { createOutbox } from './outbox.ts';

const claim = (id: string): WorkerMessage => ({ type: 'task_claimed', data: { task_id: id, worker_id: 'w' } });

test('keeps unconfirmed messages, in order', () => {
  const outbox = createOutbox();
  for (const id of ['a', 'b', 'c']) outbox.keep(claim(id));
  outbox.confirm(1);
  expect(outbox.kept().map(({ number, message }) => [number, message.data])).toEqual([
    [2, { task_id: 'b', worker_id: 'w' }],
    [3, { task_id: 'c', worker_id: 'w' }],
  ]);
});

test('reports a confirmation only if it confirms a message', () => {
  let told = 0;
  const outbox = createOutbox(() => {
    told += 1;
  });
  outbox.keep(claim('a'));
  outbox.confirm(0);
  expect(told).toBe(0);
  outbox.confirm(1);
  outbox.confirm(1);
  expect(told).toBe(1);
});
