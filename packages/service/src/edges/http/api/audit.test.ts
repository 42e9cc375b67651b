import { type AuditEntry, ListAuditEntriesResponse } from '@runyard/contract/audit';
import { maxChangesPerDay } from '@runyard/contract/limits';
import type { Route } from '@runyard/contract/route';
import { type RouteName, routes } from '@runyard/contract/routes';
import { describe, expect, test } from 'vitest';
import { makeOwnThings } from '../../../../test/own-things.ts';
import { newPerson, newTeam, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';
import { accessDomain } from '../../../team/access/domain.ts';

const service = await openTestService();
const { db } = service.deps;
await db.query('UPDATE teams SET max_concurrent_executions = 10000');
const first = await teamUidOf(service);

const list = async (query = '', key?: string, headers = {}) => {
  const answer = await service.request('GET', `/audit-log${query}`, { headers, ...(key ? { key } : {}) });
  return ListAuditEntriesResponse.parse(answer.body);
};
const entryOf = async (requestId: string): Promise<AuditEntry | undefined> =>
  (await list('?limit=500')).entries.find(({ origin }) => origin.request_id === requestId);

/** Routes that change something without an entry. Runs, follow-ups and timelines name their authors themselves. */
const unrecorded: readonly RouteName[] = [
  'createRun',
  'createRunDeprecated',
  'rerunRun',
  'sendFollowup',
  'runSchedule',
  'dispatchFactory',
  'interruptRun',
  // Sessions begin and end often; the list of keys has the key that created a session.
  'createSignInCode',
  'endBrowserSession',
  // Sends deliveries that are enqueued; their log has each attempt.
  'testEventSubscription',
  'redeliverEvent',
  // The apply has an entry, with the person who set the source.
  'syncFactorySource',
  // Changes nothing.
  'testFilter',
  'dryRunAutomation',
  'simulateDelivery',
];

const changing = (Object.entries(routes) as [RouteName, Route][]).filter(
  ([name, { method, allow }]) => method !== 'GET' && ('user' in allow || name === 'acceptTeamInvitation'),
);

test.each(changing.filter(([name]) => !unrecorded.includes(name)))('%s writes one entry', async (name, route) => {
  // A team has a limited number of them.
  for (const table of ['event_subscriptions', 'code_host_credentials', 'mcp_servers', 'schedules', 'factories'])
    await db.query(`DELETE FROM ${table}`);
  const { own, requestOf } = await makeOwnThings(service, service.key, route);
  const { path, options } = requestOf(name, route);
  if (name === 'resumeSchedule') await service.request('POST', `/agent/schedules/${own.scheduleId}/pause`);
  if (name === 'unshareEnvironment') await service.request('POST', path);
  if (name === 'admitEnvironmentGuest' || name === 'addWorkerPoolConnector') await service.request('DELETE', path);
  const asked = name === 'deleteRun' ? `/agent/runs/${await endedRun()}` : path;
  const key = name === 'acceptTeamInvitation' ? null : name === 'joinTeam' ? await outsider() : service.key;
  const answer = await service.request(route.method, asked, { ...options, key });
  expect(answer.status, answer.text).toBe(route.answer.status);
  const rows = await db.query<{ action: string; user_agent: string; address: string }>(
    'SELECT action, user_agent, address FROM audit_entries WHERE request_id = $1',
    [answer.headers.get('x-request-id')],
  );
  expect(rows).toMatchObject([{ action: expect.stringMatching(/^[a-z_]+\.[a-z_]+$/), address: '127.0.0.1' }]);
});

const outsider = () => service.newKey({ teamId: service.otherTeamId });
async function endedRun(): Promise<string> {
  const runId = await service.newRun();
  await service.request('POST', `/agent/runs/${runId}/cancel`);
  return runId;
}

describe('an entry', () => {
  test('shows author, change, earlier state and origin', async () => {
    const person = await newPerson(service, first, 'member');
    const answer = await service.request('PATCH', `/teams/${first}/members/${person.uid}`, {
      body: { role: 'admin' },
      headers: { 'user-agent': 'a-browser/1.0' },
    });
    const requestId = answer.headers.get('x-request-id') ?? '';
    const [key] = await db.query<{ id: string }>('SELECT id FROM api_keys WHERE is_operator');
    expect(await entryOf(requestId)).toMatchObject({
      actor: { type: 'user', display_name: 'Administrator' },
      action: 'member.update',
      subject: { type: 'member', uid: person.uid, name: 'A member' },
      before: { role: 'member' },
      after: { role: 'admin' },
      origin: { address: '127.0.0.1', user_agent: 'a-browser/1.0', request_id: requestId, key_uid: key?.id },
    });
  });

  test('is not written for a change that was refused', async () => {
    const person = await newPerson(service, first, 'admin');
    const before = (await list()).entries[0]?.id;
    await service.request('PATCH', `/teams/${first}/members/${person.uid}`, {
      key: person.key,
      body: { role: 'owner' },
    });
    expect((await list()).entries[0]?.id).toBe(before);
  });

  test('holds no keys, secrets of subscriptions, or commands', async () => {
    const made = await service.request<{ key: string }>('POST', '/keys', { body: { name: 'K', kind: 'personal' } });
    const named = await service.request('POST', '/keys', { body: { name: made.body.key, kind: 'personal' } });
    expect(named.status).toBe(201);
    const { key: invitation } = (
      await service.request<{ key: string }>('POST', `/teams/${first}/invitations`, { body: { role: 'member' } })
    ).body;
    const subscription = await service.request<{ secret: string }>('POST', '/event-subscriptions', {
      body: { url: 'https://example.com/planted-in-url', events: ['run.created'] },
    });
    await service.request('POST', '/agent/environments', {
      body: { config: { name: 'E', setup_commands: ['echo planted-in-command'], planted: 'planted-in-member' } },
    });
    const [dump] = await db.query<{ text: string }>('SELECT json_agg(e)::text AS text FROM audit_entries e');
    for (const secret of [made.body.key, invitation, subscription.body.secret, 'planted-in'])
      expect(dump?.text).not.toContain(secret);
  });
});

describe('GET /audit-log', () => {
  test('pages over all entries once, newest first, and filters', async () => {
    const person = await newPerson(service, first, 'admin');
    for (let i = 0; i < 5; i += 1)
      await service.request('POST', '/keys', { key: person.key, body: { name: `K${i}`, kind: 'personal' } });
    const query = `?actor=${person.uid}&action=key.create&subject_type=key&limit=2`;
    const names: unknown[] = [];
    for (let cursor = ''; ; ) {
      const page = await list(query + cursor);
      names.push(...page.entries.map(({ subject }) => subject.name));
      if (!page.page_info.has_next_page) break;
      cursor = `&cursor=${page.page_info.next_cursor}`;
    }
    expect(names).toEqual(['K4', 'K3', 'K2', 'K1', 'K0']);
    const { next_cursor } = (await list(query)).page_info;
    await service.problem(400, 'GET', `/audit-log?cursor=${next_cursor}`);
    await service.problem(400, 'GET', '/audit-log?cursor=x');
    const [newest] = (await list(query)).entries;
    expect((await list(`?subject_uid=${newest?.subject.uid}`)).entries).toEqual([newest]);
    expect((await list(`?until=${newest?.occurred_at}&actor=${person.uid}`)).entries).not.toContainEqual(newest);
    expect((await list(`?since=${newest?.occurred_at}&actor=${person.uid}`)).entries).toEqual([newest]);
  });

  test('shows each team its own entries, to administrators', async () => {
    const second = await newTeam(service, 'Other');
    const { entries } = await list('', service.key, { 'X-Team-Uid': second });
    expect(entries.map(({ action }) => action)).toEqual(['team.create']);
    const { key } = await newPerson(service, first, 'member');
    await service.problem(403, 'GET', '/audit-log', { key });
  });
});

describe('a team that changes things all day', () => {
  test('is refused at the limit, and can still end access', async () => {
    // Tomorrow too: the day may end now.
    const full = (uid: string) =>
      db.query(
        `INSERT INTO audit_days SELECT id, (now() AT TIME ZONE 'UTC')::date + n, $2 FROM teams, generate_series(0, 1) n WHERE uid = $1
         ON CONFLICT (team_id, day) DO UPDATE SET entries = excluded.entries`,
        [uid, maxChangesPerDay],
      );
    await db.query('DELETE FROM event_subscriptions');
    const { own } = await makeOwnThings(service);
    const team = await newTeam(service, 'Busy');
    const person = await newPerson(service, team, 'admin');
    const made = await service.request<{ uid: string }>('POST', '/keys', {
      key: person.key,
      body: { name: 'K', kind: 'personal' },
    });
    await full(team);
    const headers = { 'X-Team-Uid': team };
    const body = { config: { name: 'E' } };
    const refused = await service.request('POST', '/agent/environments', { headers, body });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3600']);
    expect((await service.request('GET', '/agent/environments', { headers })).body).toEqual({ environments: [] });
    expect((await service.request('DELETE', `/keys/${made.body.uid}`, { headers })).status).toBe(200);
    expect((await service.request('DELETE', `/teams/${team}/members/${person.uid}`)).status).toBe(200);
    const cases = [
      ['POST', `/agent/artifacts/${own.artifactUid}/share`, 429],
      ['DELETE', `/agent/artifacts/${own.artifactUid}/share`, 200],
      ['DELETE', `/agent/artifacts/${own.artifactUid}`, 200],
      ['POST', `/event-subscriptions/${own.subscriptionId}/rotate-secret`, 429],
      ['DELETE', `/event-subscriptions/${own.subscriptionId}`, 200],
      ['DELETE', `/agent/environments/${own.environmentUid}`, 200],
      ['POST', `/agent/runs/${own.runId}/cancel`, 200],
    ] as const;
    await full(first);
    for (const [method, path, status] of cases)
      expect((await service.request(method, path)).status, `${method} ${path}`).toBe(status);
    await db.query('DELETE FROM audit_days');
    // Other teams are not affected.
    expect((await service.request('POST', '/agent/environments', { body })).status).toBe(201);
  });
});

test('old entries are deleted by the nightly sweep', async () => {
  await newPerson(service, first, 'viewer');
  const [kept] = (await list('?action=member.create&limit=1')).entries;
  const { key } = await newPerson(service, first, 'viewer');
  expect(key).not.toBe('');
  const [old] = (await list('?action=member.create&limit=1')).entries;
  await db.query(`UPDATE audit_entries SET occurred_at = now() - interval '401 days' WHERE id = $1`, [old?.id]);
  const [task] = accessDomain(service.deps, async () => []).retention?.nightly ?? [];
  expect(await task?.run(db)).toEqual({ rows: 1, more: false });
  const ids = (await list('?limit=500')).entries.map(({ id }) => id);
  expect(ids).toContain(kept?.id);
  expect(ids).not.toContain(old?.id);
});
