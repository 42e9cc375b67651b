import { createClient } from '@runyard/client';
import { expect, test } from 'vitest';
import { openTestService } from '../../../../service/test/service.ts';
import { firstRuns } from './list.ts';

const service = await openTestService();

test('firstRuns returns as many runs as requested, even if the service returns shorter pages', async () => {
  const made: string[] = [];
  for (let i = 0; i < 18; i += 1) made.unshift(await service.newRun({ prompt: 'x'.repeat(1024 * 1024) }));
  const client = createClient({ baseUrl: service.baseUrl, apiKey: service.key });
  const list = async (limit: number) => {
    const { runs, page_info } = await firstRuns(client, { sort_by: 'created_at' }, limit);
    return { ids: runs.map(({ run_id }) => run_id), hasNext: page_info.has_next_page };
  };
  expect((await client.listRuns({ query: { limit: 18 } })).runs.length).toBeLessThan(18);
  expect(await list(18)).toEqual({ ids: made, hasNext: false });
  expect(await list(17)).toEqual({ ids: made.slice(0, 17), hasNext: true });
});
