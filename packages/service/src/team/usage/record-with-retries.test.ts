import { expect, test } from 'vitest';
import type { Database } from '../../platform/store/database/database.ts';
import type { ModelUsage } from './model-usage.ts';
import { makeUsageRecorder } from './record-with-retries.ts';

test('usage that could not be recorded is recorded again, even if the database always refuses one of the requests', async () => {
  const refused = new Set(['first', 'second']);
  const recorded: unknown[] = [];
  const transaction = async (work: (tx: Pick<Database, 'query'>) => Promise<void>) =>
    await work({
      query: async (_statement: unknown, values?: readonly unknown[]) => {
        if (refused.has(String(values?.[0]))) throw new Error('refused');
        recorded.push(values?.[0]);
        return [];
      },
    });
  const recorder = makeUsageRecorder({ transaction } as unknown as Database, { error: () => {} });
  const creator = { kind: 'user', uid: 'user' };
  for (const requestId of refused)
    await recorder.record({ requestId, ancestorIds: [], creator, executor: creator } as unknown as ModelUsage);
  refused.delete('second');
  await recorder.retry();
  expect(recorded).toContain('second');
});
