import type { V1Job } from '@kubernetes/client-node';
import { afterEach, expect, test } from 'vitest';
import { type Look, openLook } from './look.ts';

let look: Look | undefined;
afterEach(() => look?.close());

test('if a watcher throws, other watchers still get the result, and the watcher is called again after the next read', async () => {
  const messages: string[] = [];
  const log = { warn: (_: object, message: string) => void messages.push(message) };
  const job: V1Job = { metadata: { uid: 'b' } };
  look = openLook({ listJobs: async () => [job], listPods: async () => [] }, 'owner', log, 1);
  let looks = 0;
  const faulty = look.untilSeen('a', () => {
    looks += 1;
    if (looks < 3) throw new Error('no such member');
    return true;
  });
  const found = Promise.withResolvers<V1Job | undefined>();
  const sound = look.untilSeen('b', ({ job }) => {
    found.resolve(job);
    return true;
  });
  await sound;
  expect(await found.promise).toBe(job);
  await faulty;
  expect([looks, messages]).toEqual([3, ['the state of a Job cannot be understood']]);
});
