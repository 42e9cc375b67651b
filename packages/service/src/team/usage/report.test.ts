import { randomUUID } from 'node:crypto';
import type { UsageReport } from '@runyard/contract/team/budgets';
import { describe, expect, it } from 'vitest';
import { modelUsage } from '../../../test/budgets.ts';
import { openTestService } from '../../../test/service.ts';
import type { ModelUsage } from './model-usage.ts';
import { recordUsage } from './record-usage.ts';

const service = await openTestService();
const { db } = service.deps;
const dayOf = (time: number) => new Date(time).toISOString().slice(0, 10);
/** The day of the rows in the tests. It stays the same even if a new day begins while the tests run. */
const today = dayOf(Date.now());
const daysBefore = (day: string, days: number) => dayOf(Date.parse(day) - days * 86_400_000);
const daysAgo = (days: number) => daysBefore(today, days);

const [person] = await db.query<{ uid: string }>('SELECT uid FROM users');
const runId = await service.newRun();
const executors = {
  creator: { kind: 'user', uid: person?.uid ?? '' },
  executor: { kind: 'service_account', uid: 'agent-1' },
} as const;
const usage = (changes: Partial<ModelUsage> = {}): ModelUsage =>
  modelUsage({ runId, teamId: service.teamId, ...executors, ...changes }, 0.1);
const other = { modelId: 'openai/gpt-6-sol', executor: { kind: 'user', uid: person?.uid ?? '' } } as const;
await recordUsage(db, usage());
await recordUsage(db, usage());
await recordUsage(db, usage(other));
await recordUsage(db, usage({ costUsd: null, breakdown: null, chargedUsd: 0 }));
await recordUsage(db, usage({ teamId: service.otherTeamId }));
await db.query("UPDATE usage_days SET day = $1::date - (model_id = 'openai/gpt-6-sol')::integer", [today]);

const report = async (query: string, key?: string) =>
  (await service.request<UsageReport>('GET', `/usage?${query}`, key ? { key } : {})).body;

describe('the usage report', () => {
  it('has the sums of each of the last 30 days if no grouping is requested', async () => {
    const { from, to, usage: rows, page_info } = await report('');
    expect([today, daysBefore(today, -1)]).toContain(to);
    expect([from, page_info]).toEqual([daysBefore(to, 29), { has_next_page: false }]);
    expect(rows).toEqual([
      expect.objectContaining({ day: daysAgo(1), requests: 1, cost_usd: 0.1, credits: 10, unpriced_requests: 0 }),
      {
        day: today,
        requests: 3,
        input_tokens: 300,
        output_tokens: 90,
        cache_read_tokens: 120,
        cache_write_tokens: 21,
        cost_usd: 0.2,
        credits: 20,
        unpriced_requests: 1,
      },
    ]);
  });

  it('can group by model, agent and creator, and shows the profiles of the creators', async () => {
    const rows = (await report('group_by=model&group_by=agent&group_by=creator')).usage;
    expect(
      rows.map(({ model_id, agent, creator, requests }) => [model_id, agent?.uid, creator?.type, requests]),
    ).toEqual([
      ['anthropic/claude-opus-5-5', 'agent-1', 'user', 3],
      ['openai/gpt-6-sol', person?.uid, 'user', 1],
    ]);
    expect(rows[0]?.creator?.display_name).toBeTypeOf('string');
    expect(rows[0]).not.toHaveProperty('day');
  });

  it('contains each row on exactly one page', async () => {
    const path = 'group_by=day&group_by=model&limit=1';
    const first = await report(path);
    const second = await report(`${path}&cursor=${first.page_info.next_cursor}`);
    expect([first.page_info.has_next_page, second.page_info.has_next_page]).toEqual([true, false]);
    expect([...first.usage, ...second.usage].map(({ model_id }) => model_id)).toEqual([
      'openai/gpt-6-sol',
      'anthropic/claude-opus-5-5',
    ]);
    const problem = await service.problem(400, 'GET', `/usage?group_by=day&cursor=${first.page_info.next_cursor}`);
    expect(problem.errors?.[0]?.path).toBe('cursor');
  });

  it('contains the usage of a deleted run, and no usage of another team', async () => {
    expect((await report('', service.otherKey)).usage).toMatchObject([{ requests: 1 }]);
    await db.query('DELETE FROM runs WHERE id = $1', [runId]);
    expect((await report(`from=${today}`)).usage).toMatchObject([{ requests: 3 }]);
  });

  it.each([`from=${today}&to=${daysAgo(3)}`, 'from=2020-01-01&to=2026-01-01', 'from=yesterday', 'group_by=team'])(
    'answers 400 to %s',
    async (query) => {
      const problem = await service.problem(400, 'GET', `/usage?${query}`);
      expect(['from', 'group_by', 'group_by.0']).toContain(problem.errors?.[0]?.path);
    },
  );

  it('contains a request of a run that was deleted before the request was recorded', async () => {
    await recordUsage(db, usage({ runId: randomUUID() }));
    expect((await report(`from=${today}&group_by=model`)).usage).toMatchObject([{ requests: 4 }]);
  });
});
