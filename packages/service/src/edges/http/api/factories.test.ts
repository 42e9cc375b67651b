import { maxFactories } from '@runyard/contract/limits';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { db } = service.deps;

describe('factories', () => {
  test('are listed by name in pages, and found by a part of name or alias', async () => {
    for (const [name, alias] of [
      ['Test', undefined],
      ['Billing', 'pay'],
      ['alerts', 'ops'],
      ['Bugs', undefined],
    ])
      await service.request('POST', '/factory', { body: { name, ...(alias ? { alias } : {}) } });
    type Page = { factories: { name: string }[]; page_info: { next_cursor?: string } };
    const names = async (query: string) =>
      (await service.request<Page>('GET', `/factory${query}`)).body.factories.map(({ name }) => name);
    expect(await names('')).toEqual(['Billing', 'Bugs', 'Test', 'alerts']);
    expect(await names('?search=B')).toEqual(['Billing', 'Bugs']);
    expect(await names('?search=OP')).toEqual(['alerts']);
    expect(await names('?search=%25')).toEqual([]);
    const { page_info } = (await service.request<Page>('GET', '/factory?limit=3')).body;
    expect(await names(`?limit=3&cursor=${encodeURIComponent(page_info.next_cursor ?? '')}`)).toEqual(['alerts']);
    await service.problem(400, 'GET', '/factory?cursor=x');
    expect((await service.request<Page>('GET', '/factory', { key: service.otherKey })).body.factories).toEqual([]);
    await service.problem(409, 'POST', '/factory', { body: { name: 'x', alias: 'pay' } });
    await service.problem(400, 'POST', '/factory', { body: { name: ' ' } });
  });

  test(`are at most ${maxFactories} of a team`, async () => {
    await db.query(
      `INSERT INTO factories (uid, team_id, name) SELECT lpad(n::text, 22, 'x'), $1, 'x' FROM generate_series(1, ${maxFactories}) n`,
      [service.teamId],
    );
    await service.problem(409, 'POST', '/factory', { body: { name: 'x' } });
  });
});
