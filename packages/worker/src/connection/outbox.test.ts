import type { WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createOutbox } from './outbox.ts';

const claim = (id: string): WorkerMessage => ({ type: 'task_claimed', data: { task_id: id, worker_id: 'w' } });

test('the outbox keeps the messages that are not confirmed, in order', () => {
  const outbox = createOutbox();
  for (const id of ['a', 'b', 'c']) outbox.keep(claim(id));
  outbox.confirm(1);
  expect(outbox.kept().map(({ number, message }) => [number, message.data])).toEqual([
    [2, { task_id: 'b', worker_id: 'w' }],
    [3, { task_id: 'c', worker_id: 'w' }],
  ]);
});

test('the outbox calls onConfirmed only if a confirmation concerns a message in the outbox', () => {
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

test('each message takes effect once and in order, even if connections are cut and confirmations are lost', () => {
  const step = fc.oneof(
    fc.constant('send' as const),
    fc.constant('connect' as const),
    // The service receives the first `arrive` messages in transit, and the worker receives the first `confirm` confirmations in transit.
    fc.record({ arrive: fc.nat(3), confirm: fc.nat(3) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const outbox = createOutbox();
      /** The numbers of messages and confirmations in transit. A new connection loses all of them. */
      let wire: number[] = [];
      let confirmations: number[] = [];
      let applied = 0;
      let sent = 0;
      const connect = () => {
        wire = outbox.kept().map(({ number }) => number);
        confirmations = [];
      };
      const arrive = (number: number) => {
        expect(number, 'no message comes before an earlier one').toBeLessThanOrEqual(applied + 1);
        // A repeated message changes nothing.
        applied = Math.max(applied, number);
        confirmations.push(number);
      };
      for (const each of steps) {
        if (each === 'connect') connect();
        else if (each === 'send') {
          sent += 1;
          wire.push(outbox.keep(claim(String(sent))).number);
        } else {
          for (const number of wire.splice(0, each.arrive)) arrive(number);
          for (const number of confirmations.splice(0, each.confirm)) outbox.confirm(number);
        }
      }
      connect();
      for (const number of wire) arrive(number);
      expect(applied).toBe(sent);
      for (const number of confirmations) outbox.confirm(number);
      expect(outbox.kept()).toEqual([]);
    }),
  );
});
