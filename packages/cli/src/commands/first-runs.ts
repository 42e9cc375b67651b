import type { Client } from '@runyard/client';
import type { ListRunsResponse } from '@runyard/contract/runs/runs';

type Listing = Pick<Client, 'listRuns'>;
type Query = NonNullable<Parameters<Client['listRuns']>[0]>['query'];

/** Returns the first `limit` runs as one page. The service may return shorter pages if the prompts are long. */
export async function firstRuns(client: Listing, query: Query, limit: number): Promise<ListRunsResponse> {
  const runs: ListRunsResponse['runs'] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await client.listRuns({
      query: { ...query, limit: limit - runs.length, ...(cursor ? { cursor } : {}) },
    });
    runs.push(...page.runs);
    cursor = page.page_info.next_cursor;
    if (cursor === undefined || runs.length >= limit) return { runs, page_info: page.page_info };
  }
}
