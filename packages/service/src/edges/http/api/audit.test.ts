import { maxChangesOfAuthorPerDay, maxChangesPerDay } from '@runyard/contract/limits';
import { type RouteName, routes } from '@runyard/contract/routes';
import { type AuditEntry, ListAuditEntriesResponse } from '@runyard/contract/team/audit';
import type { Route } from '@runyard/contract/wire/route';
import { describe, expect, test } from 'vitest';
import { newBrowserSession } from '../../../../test/browser-session.ts';
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

/** Routes that change something but write no entry. */
const unrecorded: readonly RouteName[] = [
  // Writes an entry, but needs the key of a session, so a separate test calls the route.
  'endBrowserSession',
  // Write an entry, but need a turn in progress, so a separate test calls these routes.
  'interruptRun',
  'interruptConversation',
  // Writes an entry, but needs a turn that has ended; conversation-forks.test.ts calls the route.
  'forkConversation',
  // The follow-up that uses the files writes the entry.
  'prepareRunAttachments',
  'prepareConversationAttachments',
  // These routes only enqueue deliveries. The log of deliveries records each attempt.
  'testEventSubscription',
  'redeliverEvent',
  // When the sync applies the files, the apply writes an entry that names the person who set the source.
  'syncFactorySource',
  // These routes write entries, but need an answer of GitHub. The tests of the channel call them.
  'createGithubApp',
  'convertGithubApp',
  'finishGithubAuthorization',
  // Writes an entry for each new run; retries.test.ts calls the route.
  'rerunFailedRuns',
  // Only the person sees the marks.
  'readNotifications',
  'unreadNotifications',
  'dismissNotifications',
  'restoreNotifications',
  // Needs an authenticator; passkeys.test.ts calls the route.
  'createPasskey',
  // Changes nothing.
  'planGithubApp',
  'authorizeGithub',
  'startPasskey',
  'testModelProvider',
  'planFactoryDefinition',
  'validateFactoryFiles',
  'previewSchedule',
  'testFilter',
  'testFilterOnDeliveries',
  'dryRunAutomation',
  'simulateDelivery',
];

const changing = (Object.entries(routes) as [RouteName, Route][]).filter(
  ([name, { method, allow }]) => method !== 'GET' && ('user' in allow || name === 'acceptTeamInvitation'),
);

test.each(changing.filter(([name]) => !unrecorded.includes(name)))('%s writes one entry', async (name, route) => {
  // Delete these rows, because a team can have only a limited number of them, and every test of this list adds some.
  for (const table of ['event_subscriptions', 'code_host_credentials', 'mcp_servers', 'schedules', 'factories'])
    await db.query(`DELETE FROM ${table}`);
  const { own, requestOf } = await makeOwnThings(service, service.key, route);
  const { path, options } = requestOf(name, route);
  if (name === 'resumeSchedule') await service.request('POST', `/agent/schedules/${own.scheduleId}/pause`);
  if (name === 'unshareEnvironment') await service.request('POST', path);
  if (name === 'addWorkerPoolConnector') await service.request('DELETE', path);
  const asked = name === 'deleteRun' ? `/agent/runs/${await endedRun()}` : path;
  const key = name === 'acceptTeamInvitation' ? null : name === 'joinTeam' ? await outsider() : service.key;
  const answer = await service.request(route.method, asked, { ...options, key });
  expect(answer.status, answer.text).toBe(route.answer.status);
  const rows = await db.query<{ action: string; user_agent: string; address: string }>(
    'SELECT action, user_agent, address FROM audit_entries WHERE request_id = $1',
    [answer.headers.get('x-request-id')],
  );
  const entry = { action: expect.stringMatching(/^[a-z_]+\.[a-z_]+$/), address: '127.0.0.1' };
  // Files for a new factory create it, and are applied to it. With an installation, its webhook is deleted.
  const writesTwo = name === 'createFactoryFromFiles' || name === 'releaseGithubInstallation';
  expect(rows).toMatchObject(writesTwo ? [entry, entry] : [entry]);
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

  test('contains no keys, secrets of subscriptions, or commands', async () => {
    const createdKey = await service.request<{ key: string }>('POST', '/keys', {
      body: { name: 'K', kind: 'personal' },
    });
    await service.ok('POST', '/keys', { body: { name: createdKey.body.key, kind: 'personal' } });
    const { key: invitation } = await service.ok<{ key: string }>('POST', `/teams/${first}/invitations`, {
      body: { role: 'member' },
    });
    const subscription = await service.request<{ secret: string }>('POST', '/event-subscriptions', {
      body: { url: 'https://example.com/planted-in-url', events: ['run.created'] },
    });
    await service.request('POST', '/agent/environments', {
      body: { config: { name: 'E', setup_commands: ['echo planted-in-command'], planted: 'planted-in-member' } },
    });
    const [dump] = await db.query<{ text: string }>('SELECT json_agg(e)::text AS text FROM audit_entries e');
    for (const secret of [createdKey.body.key, invitation, subscription.body.secret, 'planted-in'])
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

  test('lists the runs that keys created: directly, through a factory, and with a manual start of a schedule', async () => {
    const post = async <T>(path: string, body: object) => await service.ok<T>('POST', path, { body });
    const { uid } = await post<{ uid: string }>('/factory', { name: 'Audited' });
    const schedule = { name: 'S', cron_schedule: '@yearly', prompt: 'a', enabled: true };
    const { id } = await post<{ id: string }>('/agent/schedules', schedule);
    const ids: string[] = [];
    for (const path of ['/agent/runs', `/factory/${uid}/runs`, `/agent/schedules/${id}/run`])
      ids.unshift((await post<{ run_id: string }>(path, { prompt: 'a' })).run_id);
    const { entries } = await list('?action=run.create&limit=3');
    expect(entries.map(({ subject }) => subject.uid)).toEqual(ids);
  });

  test('shows each team its own entries, to administrators', async () => {
    const second = await newTeam(service, 'Other');
    const { entries } = await list('', service.key, { 'X-Team-Uid': second });
    expect(entries.map(({ action }) => action)).toEqual(['team.create']);
    const { key } = await newPerson(service, first, 'member');
    await service.problem(403, 'GET', '/audit-log', { key });
  });
});

describe('a team that makes changes all day', () => {
  /**
   * Sets the count of changes of the author, or of the team if no author is given, for today and tomorrow, because the day may end during
   * the test.
   */
  const full = (teamUid: string, entries: number, author = '') =>
    db.query(
      `INSERT INTO audit_days (team_id, day, entries, author)
       SELECT id, (now() AT TIME ZONE 'UTC')::date + n, $2, $3 FROM teams, generate_series(0, 1) n WHERE uid = $1
       ON CONFLICT (team_id, day, author) DO UPDATE SET entries = excluded.entries`,
      [teamUid, entries, author],
    );
  const create = (key: string) =>
    service.request('POST', '/agent/environments', { key, body: { config: { name: 'E' } } });

  test('cannot make changes above the limit, but can still revoke access', async () => {
    await db.query('DELETE FROM event_subscriptions');
    const { own } = await makeOwnThings(service);
    const admin = await newPerson(service, first, 'admin');
    const member = await newPerson(service, first, 'member');
    const createdKey = await service.request<{ uid: string }>('POST', '/keys', {
      key: admin.key,
      body: { name: 'K', kind: 'personal' },
    });
    const { environments } = await service.ok<{ environments: object[] }>('GET', '/agent/environments');
    await full(first, maxChangesPerDay);
    const refused = await create(admin.key);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3600']);
    const after = await service.request<{ environments: object[] }>('GET', '/agent/environments');
    expect(after.body.environments).toHaveLength(environments.length);
    const cases = [
      ['POST', `/agent/artifacts/${own.artifactUid}/share`, 429],
      ['DELETE', `/agent/artifacts/${own.artifactUid}/share`, 200],
      ['DELETE', `/agent/artifacts/${own.artifactUid}`, 200],
      ['POST', `/event-subscriptions/${own.subscriptionId}/rotate-secret`, 429],
      ['DELETE', `/event-subscriptions/${own.subscriptionId}`, 200],
      ['DELETE', `/agent/environments/${own.environmentUid}`, 200],
      ['POST', `/agent/runs/${own.runId}/cancel`, 200],
      ['DELETE', `/keys/${createdKey.body.uid}`, 200],
      ['DELETE', `/teams/${first}/members/${member.uid}`, 200],
    ] as const;
    for (const [method, path, status] of cases)
      expect((await service.request(method, path, { key: admin.key })).status, `${method} ${path}`).toBe(status);
    expect((await create(service.key)).status, 'an owner').toBe(201);
    expect((await create(service.otherKey)).status, 'another team').toBe(201);
    await db.query('DELETE FROM audit_days');
  });

  test('can still make changes after one key has reached its limit', async () => {
    const key = await service.newKey({ kind: 'agent' });
    const [row] = await db.query<{ id: string }>('SELECT id FROM api_keys WHERE last_four = $1', [key.slice(-4)]);
    await full(first, maxChangesOfAuthorPerDay, `service_account ${row?.id}`);
    expect((await create(key)).status).toBe(429);
    const counts = await db.query('SELECT FROM audit_days WHERE entries > 100 AND author = $1', ['']);
    expect(counts, 'what was refused does not count for the team').toEqual([]);
    expect((await create(await service.newKey({ role: 'member' }))).status, 'another author').toBe(201);
    expect(maxChangesOfAuthorPerDay * 2).toBeLessThan(maxChangesPerDay);
    await db.query('DELETE FROM audit_days');
  });
});

describe('an action that changes no resource has an entry', () => {
  const newest = async () => (await list('?limit=1')).entries[0];

  test('a sign-in and its end', async () => {
    const headers = await newBrowserSession(service);
    const [session] = await db.query<{ id: string }>(
      'SELECT id FROM api_keys WHERE minted_by IS NOT NULL ORDER BY id DESC',
    );
    const subject = { type: 'browser_session', uid: session?.id };
    expect(await newest()).toMatchObject({
      action: 'browser_session.create',
      actor: { display_name: 'Administrator' },
      subject,
      origin: { address: '127.0.0.1' },
    });
    await service.request('DELETE', '/browser-sessions/current', { key: null, headers });
    expect(await newest()).toMatchObject({ action: 'browser_session.delete', subject });
    await service.request('DELETE', '/browser-sessions', { key: null, headers: await newBrowserSession(service) });
    expect(await newest()).toMatchObject({
      action: 'browser_session.delete',
      actor: { display_name: 'Administrator' },
      before: { browser_sessions: 1 },
    });
  });

  test('a follow-up, an interrupt, an answer, an approval', async () => {
    const { runId, runToken } = await service.startExecution();
    const subject = { type: 'run', uid: runId };
    const at = '2026-01-02T03:04:05.000Z';
    const send = (...events: object[]) => service.report(runToken, events);
    const answer = (body: object) =>
      service.request<{ followup_id: string }>('POST', `/agent/runs/${runId}/followups`, { body });
    await send(
      { seq: 1, occurred_at: at, type: 'agent_started', harness: 'oz', model_id: 'runbook' },
      { seq: 2, occurred_at: at, type: 'turn_started', step_id: 's1', prompt: 'a' },
    );
    const { body } = await answer({ message: 'planted-in-message' });
    expect(await newest()).toMatchObject({
      action: 'run.follow_up',
      subject,
      after: { follow_up_id: body.followup_id },
    });
    expect((await service.request('POST', `/agent/runs/${runId}/interrupt`)).status).toBe(200);
    expect(await newest()).toMatchObject({ action: 'run.interrupt', subject });
    await send({
      seq: 3,
      occurred_at: at,
      type: 'blocked',
      step_id: 's1',
      request: { request_id: 'q1', kind: 'question', title: 'Which?' },
    });
    expect((await answer({ message: 'That one.' })).status).toBe(200);
    expect(await newest()).toMatchObject({ action: 'run.answer', subject, after: { request_id: 'q1' } });
    await send({
      seq: 4,
      occurred_at: at,
      type: 'blocked',
      step_id: 's1',
      request: { request_id: 'q2', kind: 'permission', title: 'rm' },
    });
    expect((await answer({ decision: 'approve' })).status).toBe(200);
    expect(await newest()).toMatchObject({ action: 'run.approve', subject, after: { request_id: 'q2' } });
    expect(JSON.stringify((await list('?limit=500')).entries)).not.toContain('planted-in-message');
  });
});

test('old entries are deleted by the nightly sweep', async () => {
  await newPerson(service, first, 'viewer');
  const [kept] = (await list('?action=member.create&limit=1')).entries;
  const { key } = await newPerson(service, first, 'viewer');
  expect(key).not.toBe('');
  const [old] = (await list('?action=member.create&limit=1')).entries;
  await db.query(`UPDATE audit_entries SET occurred_at = now() - interval '401 days' WHERE id = $1`, [old?.id]);
  const [task] =
    accessDomain(
      service.deps,
      async () => [],
      async () => [],
      async () => undefined,
    ).retention?.nightly ?? [];
  expect(await task?.run(db)).toEqual({ rows: 1, more: false });
  const ids = (await list('?limit=500')).entries.map(({ id }) => id);
  expect(ids).toContain(kept?.id);
  expect(ids).not.toContain(old?.id);
});
