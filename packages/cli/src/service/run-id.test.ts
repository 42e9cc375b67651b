import type { Client } from '@runyard/client';
import type { ListRunsResponse, RunItem } from '@runyard/contract/runs/runs';
import { expect, test } from 'vitest';
import { resolveRunId, shortIds } from './run-id.ts';

type Query = NonNullable<Parameters<Client['listRuns']>[0]>['query'];

/** A fake of the API's list of runs. It returns pages of runs within the times of the query, newest first. */
function fakeList(ids: readonly string[], parents: Readonly<Record<string, string>> = {}) {
  const queries: Query[] = [];
  const createdAt = (id: string) => new Date(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toISOString();
  const listRuns = async ({ query }: { query?: Query } = {}): Promise<ListRunsResponse> => {
    queries.push(query);
    const { created_after = '', created_before = '9999-12', limit = 20, cursor = '0' } = query ?? {};
    const matchingIds = [...ids]
      .sort()
      .reverse()
      .filter((id) => createdAt(id) > String(created_after) && createdAt(id) < String(created_before));
    const end = Number(cursor) + limit;
    const runs = matchingIds.slice(Number(cursor), end).map((run_id) => {
      const parent = parents[run_id];
      return { run_id, title: `Title of ${run_id}`, state: 'SUCCEEDED', ...(parent ? { parent_run_id: parent } : {}) };
    });
    const more = end < matchingIds.length;
    return {
      runs: runs as RunItem[],
      page_info: { has_next_page: more, ...(more ? { next_cursor: String(end) } : {}) },
    };
  };
  return { client: { listRuns } as Pick<Client, 'listRuns'>, queries };
}

const one = '01a2019c-09f1-7415-9359-43709f8197ba';
const two = '01a2019c-09f1-7415-a527-c7e0205b7d1c';
const later = '01a2019e-51d0-7b04-87dd-01de8a347c21';

test('resolveRunId accepts a whole id without a request', async () => {
  const { client, queries } = fakeList([]);
  expect(await resolveRunId(client, one.toUpperCase())).toBe(one);
  expect(queries).toEqual([]);
});

test.each([
  ['01a2019e', later],
  ['01A2019E51', later],
  ['01a2019c-09f1-7415-9', one],
  ['01a2019c-09f1-7415-a527-c7e0205b7d1', two],
])('resolveRunId finds the only run whose id begins with %s, in one request', async (prefix, expected) => {
  const { client, queries } = fakeList([one, two, later]);
  expect(await resolveRunId(client, prefix)).toBe(expected);
  expect(queries).toHaveLength(1);
});

test('resolveRunId lists the runs if the ids of several runs begin with the given text', async () => {
  const { client } = fakeList([one, two, later]);
  const refused = resolveRunId(client, '01a2019c');
  await expect(refused).rejects.toThrow(/several runs.*01a2019c; give more characters:\n {2}01a2019c-09f1-7415-a527/s);
  await expect(refused).rejects.not.toThrow(later);
});

test.each([['ffffffff'], ['0'], ['01a2019d-0000-7']])(
  'resolveRunId reports that no run has an id that begins with %s',
  async (prefix) => {
    const { client } = fakeList(prefix === '0' ? [] : [one, two, later]);
    await expect(resolveRunId(client, prefix)).rejects.toThrow(`no run has an id that begins with ${prefix}`);
  },
);

test.each([['nope'], [''], [`${one}0`], ['last']])('resolveRunId rejects %j without a request', async (name) => {
  const { client, queries } = fakeList([one]);
  await expect(resolveRunId(client, name)).rejects.toThrow(/is not the id of a run, its beginning, or latest/);
  expect(queries).toEqual([]);
});

test('resolveRunId returns for `latest` the newest run that no other run started', async () => {
  const { client } = fakeList([one, two, later], { [later]: two });
  expect(await resolveRunId(client, 'latest')).toBe(two);
  await expect(resolveRunId(fakeList([]).client, 'latest')).rejects.toThrow('there is no run yet');
});

test('resolveRunId sends at most ten requests, even if many runs were created in the same millisecond', async () => {
  const same = Array.from({ length: 500 }, (_, index) => `01a2019c-09f1-7415-9359-${String(index).padStart(12, '0')}`);
  const { client, queries } = fakeList(same);
  await expect(resolveRunId(client, '01a2019c-09f1-7415-9359-ffff')).rejects.toThrow('give more characters');
  expect(queries).toHaveLength(10);
});

test('shortIds shortens ids to a beginning that distinguishes them', () => {
  expect([...shortIds([one, later]).values()]).toEqual(['01a2019c-09f1', '01a2019e-51d0']);
  expect([...shortIds([one, two]).values()]).toEqual(['01a2019c-09f1-7415-9', '01a2019c-09f1-7415-a']);
  expect(shortIds([]).size).toBe(0);
});
