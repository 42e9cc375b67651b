import { SearchResponse, type SearchResult } from '@runyard/contract/team/search';
import { expect, test } from 'vitest';
import { automationOf } from '../../../../test/own-requests.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const viewer = await service.newKey({ role: 'viewer' });
const agentKey = await service.newKey({ kind: 'agent' });

const post = async (path: string, body: object, key = service.key): Promise<Record<string, string>> =>
  await service.ok<Record<string, string>>('POST', path, { key, body });
const search = async (query: Record<string, string> | string[][], key = viewer): Promise<SearchResult[]> =>
  SearchResponse.parse(await service.ok('GET', `/search?${new URLSearchParams(query as never)}`, { key })).results;
const found = async (q: string, key?: string) => (await search({ q }, key)).map(({ kind, name }) => `${kind} ${name}`);

const schedule = { name: 'monthly-refund-report', cron_schedule: '@yearly', prompt: 'a', enabled: true };

/** Creates a run, an environment and every other kind of thing that the search finds, in the team of the key. */
async function makeThings(key = service.key) {
  const environment = await post('/agent/environments', { config: { name: 'Refund sandbox' } }, key);
  const factory = await post('/factory', { name: 'Refunds' }, key);
  const webhook = await post(`/factory/${factory.uid}/webhooks`, { name: 'Refund events' }, key);
  const automation = await post(
    `/factory/${factory.uid}/automations`,
    { ...automationOf(webhook.uid ?? ''), name: 'Audit refund' },
    key,
  );
  const identity = await post('/agent/identities', { name: 'Refund agent' }, key);
  const made = await post('/agent/schedules', schedule, key);
  const runId = await service.newRun({ title: 'Review idempotent refunds' }, key);
  return { environment, factory, webhook, automation, identity, schedule: made, runId };
}
const things = await makeThings();
const { factory, automation, webhook } = things;
const others = await makeThings(service.otherKey);
await service.deps.db.query(`UPDATE users SET display_name = 'Ada Refund' WHERE display_name = 'Administrator'`);

test('a search finds things of each kind by a part of the name and by kind, with path and state, also for a viewer', async () => {
  const results = await search({ q: 'REFUND' });
  expect(results.map(({ kind, uid, path }) => [kind, uid, path])).toEqual([
    ['run', things.runId, `/runs/${things.runId}`],
    ['schedule', things.schedule.id, `/schedules/${things.schedule.id}`],
    ['automation', automation.uid, `/factories/${factory.uid}/automations/${automation.uid}`],
    ['webhook', webhook.uid, `/factories/${factory.uid}/webhooks/${webhook.uid}`],
    ['factory', factory.uid, `/factories/${factory.uid}`],
    ['environment', things.environment.uid, `/environments/${things.environment.uid}`],
    ['agent', things.identity.uid, '/agents'],
    ['person', expect.any(String), '/settings/members'],
  ]);
  expect(results[0]).toMatchObject({ name: 'Review idempotent refunds', state: 'QUEUED', is_id_match: false });
  expect(results[1]).toMatchObject({ enabled: true, next_run_at: expect.any(String) });
  expect(results[2]).toMatchObject({ name: 'Audit refund', enabled: true, factory_uid: factory.uid });
});

test("a search finds only things of the caller's team that have all words", async () => {
  expect(await found('refund audit')).toEqual(['automation Audit refund']);
  expect(await found('refund nothing')).toEqual([]);
  const ofOthers = await search({ q: 'refund' }, service.otherKey);
  const uids = ofOthers.map(({ uid }) => uid);
  expect(uids).toEqual(expect.arrayContaining([others.runId, others.factory.uid, others.webhook.uid]));
  const own = Object.values(things).map((thing) => (typeof thing === 'string' ? thing : (thing.uid ?? thing.id)));
  expect(uids.filter((uid) => own.includes(uid))).toEqual([]);
  for (const { uid } of ofOthers.filter(({ kind }) => kind !== 'person')) expect(await search({ q: uid })).toEqual([]);
});

test('a search for a pasted id or address lists the thing with this id first, and related things after it', async () => {
  for (const q of [things.runId, things.runId.toUpperCase(), `${service.baseUrl}/runs/${things.runId}?tab=files`])
    expect(await search({ q })).toMatchObject([{ kind: 'run', uid: things.runId, is_id_match: true }]);
  for (const uid of [factory.uid ?? '', things.environment.uid ?? '', things.schedule.id ?? ''])
    expect(await search({ q: uid })).toMatchObject([{ uid, is_id_match: true }]);
  const address = `${service.baseUrl}/factories/${factory.uid}/automations/${automation.uid}`;
  expect((await search({ q: address })).map(({ kind }) => kind)).toEqual(['automation', 'factory']);
});

test('a search lists at most `limit` things of each kind: first names that begin with the words, then the most recently changed', async () => {
  for (const name of ['A limit', 'Limit 1', 'Limit 2', 'B limit']) await post('/factory', { name });
  const query = [
    ['q', 'limit'],
    ['kind', 'factory'],
    ['kind', 'run'],
    ['limit', '3'],
  ];
  expect((await search(query)).map(({ name }) => name)).toEqual(['Limit 2', 'Limit 1', 'B limit']);
});

test('a search treats special characters in words as text', async () => {
  for (const q of ['%', '_', '\\', `' OR 1=1 --`]) expect(await found(q)).toEqual([]);
  await post('/factory', { name: '100% \\ sure' });
  expect(await found('% \\')).toEqual(['factory 100% \\ sure']);
});

test('a search shows a personal schedule only to its person and to administrators, and does not show people to agents', async () => {
  const [member, colleague] = [await service.newKey({ role: 'member' }), await service.newKey({ role: 'member' })];
  await post('/agent/schedules', { ...schedule, name: 'my secret plan', team: false }, member);
  const name = 'schedule my secret plan';
  expect(await found('secret plan', member)).toEqual([name]);
  expect(await found('secret plan', service.key)).toEqual([name]);
  for (const key of [colleague, viewer, agentKey]) expect(await found('secret plan', key)).toEqual([]);
  expect(await found('ada', viewer)).toEqual(['person Ada Refund']);
  expect(await found('ada', agentKey)).toEqual([]);
});

test.each([
  ['no q', '', 'q'],
  ['a blank q', 'q=%20', 'q'],
  ['a long q', `q=${'a'.repeat(501)}`, 'q'],
  ['another kind', 'q=a&kind=secret', 'kind.0'],
  ['a large limit', 'q=a&limit=21', 'limit'],
])('a search answers 400 for %s', async (_, query, path) => {
  const problem = await service.problem(400, 'GET', `/search?${query}`);
  expect(problem.errors?.map((error) => error.path)).toContain(path);
});
