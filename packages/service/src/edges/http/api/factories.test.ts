import type { Factory } from '@runyard/contract/factories/factories';
import { maxFactories } from '@runyard/contract/limits';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { db } = service.deps;

describe('a factory', () => {
  const agent_defaults = { model_id: 'runbook', environment_id: 'x'.repeat(22), worker_host: 'build-1', later: 1 };
  const create = async (body: object) =>
    (await service.request<Factory>('POST', '/factory', { body: { name: 'F', ...body } })).body;

  test('shows its team, its code host and all its defaults in the answers to create, read and list', async () => {
    const made = await create({ repositories: [{ owner: 'acme', repo: 'site' }], agent_defaults });
    const [team] = await db.query<{ uid: string }>('SELECT uid FROM teams WHERE id = $1', [service.teamId]);
    expect(made).toMatchObject({
      team_uid: team?.uid,
      agent_defaults: { ...agent_defaults, default_runner_uid: '', mcp_servers: {}, secrets: [] },
      default_model: 'runbook',
      default_environment: agent_defaults.environment_id,
      code_forge: 'GITHUB',
      code_forges: ['GITHUB'],
      credential_strategy: 'EXECUTOR',
      integrations: null,
      scoring: {},
      scorer_defaults: {},
    });
    expect((await service.request('GET', `/factory/${made.uid}`)).body).toEqual(made);
    const { agents, ...listed } = made;
    type Page = { factories: Factory[] };
    const list = async (query: string) => (await service.request<Page>('GET', `/factory${query}`)).body.factories;
    expect(await list('')).toEqual([listed]);
    expect(await list(`?team_uid=${team?.uid}`)).toEqual([listed]);
    expect(await list('?team_uid=another')).toEqual([]);
    expect(made, 'members without a value are null').toMatchObject({ alias: null, description: null });
    const again = await create({ agent_defaults: made.agent_defaults });
    expect(again.agent_defaults, 'an answer can be sent back').toEqual(made.agent_defaults);
    expect(again.code_forge, 'it has no repositories').toBe('NONE');
    expect(await create({ name: 'Bare' })).toMatchObject({ default_environment: null, default_model: null });
    for (const { uid } of await list('')) await service.request('DELETE', `/factory/${uid}`);
  });
});

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
    await db.query(
      `INSERT INTO factories (uid, team_id, name) SELECT lpad(n::text, 22, 'y'), $1, 'z' FROM generate_series(1, 47) n`,
      [service.teamId],
    );
    expect(await names(''), 'a page has 50 by default').toHaveLength(50);
    await db.query("DELETE FROM factories WHERE name = 'z'");
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

  test(`are at most ${maxFactories} in a team`, async () => {
    await db.query(
      `INSERT INTO factories (uid, team_id, name) SELECT lpad(n::text, 22, 'x'), $1, 'x' FROM generate_series(1, ${maxFactories}) n`,
      [service.teamId],
    );
    await service.problem(409, 'POST', '/factory', { body: { name: 'x' } });
  });
});
