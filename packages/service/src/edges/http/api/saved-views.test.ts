import { ListSavedViewsResponse, SavedView } from '@runyard/contract/team/saved-views';
import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const viewer = await service.newKey({ role: 'viewer' });

const save = async (name: string, path = '/runs?state=FAILED', key = viewer): Promise<SavedView> =>
  SavedView.parse(await service.ok('POST', '/saved-views', { key, body: { name, path } }));
const list = async (key = viewer) =>
  ListSavedViewsResponse.parse(await service.ok('GET', '/saved-views', { key })).saved_views;
const names = async (key?: string) => (await list(key)).map(({ name, position }) => `${position} ${name}`);
const change = (id: string, body: object, key = viewer) =>
  service.request<SavedView>('PATCH', `/saved-views/${id}`, { key, body });

test('a viewer saves, renames, moves and deletes views', async () => {
  const [a, b, c] = [await save('a'), await save('b'), await save('c', '/usage?by=model')];
  expect(await names()).toEqual(['0 a', '1 b', '2 c']);
  expect((await change(c.id, { position: 0 })).body).toEqual({ ...c, position: 0 });
  expect((await change(a.id, { name: 'A', path: '/runs?q=1' })).body).toMatchObject({ name: 'A', path: '/runs?q=1' });
  expect((await change(b.id, { position: 49 })).body.position).toBe(2);
  expect(await names()).toEqual(['0 c', '1 A', '2 b']);
  expect(await service.ok('DELETE', `/saved-views/${a.id}`, { key: viewer })).toEqual({ success: true });
  await service.problem(404, 'DELETE', `/saved-views/${a.id}`, { key: viewer });
  expect(await names()).toEqual(['0 c', '1 b']);
  await save('d');
  expect(await names()).toEqual(['0 c', '1 b', '2 d']);
});

test('a view is visible only to its author, and not to an owner of the team', async () => {
  const { id } = await save('mine');
  for (const key of [service.key, service.otherKey]) {
    expect((await list(key)).map((view) => view.id)).not.toContain(id);
    expect((await change(id, { name: 'theirs' }, key)).status).toBe(404);
    await service.problem(404, 'DELETE', `/saved-views/${id}`, { key });
  }
  expect((await change('no id', { name: 'x' })).status).toBe(404);
  expect((await list()).find((view) => view.id === id)?.name).toBe('mine');
});

test('a person has at most 50 views, and a repeated request does not save a second view', async () => {
  const key = await service.newKey({ role: 'member' });
  const request = { key, body: { name: 'v', path: '/runs' }, headers: { 'idempotency-key': 'once' } };
  const first = await service.request('POST', '/saved-views', request);
  expect(await service.ok('POST', '/saved-views', request)).toEqual(first.body);
  for (let n = 1; n < 50; n += 1) await save(`v${n}`, '/runs', key);
  await service.problem(409, 'POST', '/saved-views', { key, body: { name: 'w', path: '/runs' } });
});

test.each([
  '',
  'runs',
  '//evil.example',
  '/\\evil.example',
  '/\t/evil.example',
  'https://evil.example/',
  'javascript:alert(1)',
  '/runs?q=\u202e',
  `/${'a'.repeat(4000)}`,
])('answers 400 for the path %j', async (path) => {
  const problem = await service.problem(400, 'POST', '/saved-views', { key: viewer, body: { name: 'v', path } });
  expect(problem.errors?.[0]?.path).toBe('path');
});

test('the views of a person who leaves the team are deleted', async () => {
  const key = await service.newKey({ role: 'member' });
  const { id } = await save('gone', '/runs', key);
  const teams = await service.ok<{ teams: { uid: string }[] }>('GET', '/teams', { key });
  const [person] = await service.deps.db.query<{ uid: string }>(
    'SELECT u.uid FROM saved_views v JOIN users u ON u.id = v.user_id WHERE v.id = $1',
    [id],
  );
  await service.ok('DELETE', `/teams/${teams.teams[0]?.uid}/members/${person?.uid}`);
  expect(await service.deps.db.query('SELECT FROM saved_views WHERE id = $1', [id])).toEqual([]);
});
