import type {
  ListNotificationsResponse,
  MarkNotificationsResponse,
  Notification,
} from '@runyard/contract/inbox/notifications';
import { beforeEach, expect, test } from 'vitest';
import { newPerson, type Person, teamUidOf } from '../../../../test/people.ts';
import { openTestSenders } from '../../../../test/senders.ts';

const { service, factory, signed, asGithub, send } = await openTestSenders();
const { db } = service.deps;
const team = await teamUidOf(service);
const ada = await newPerson(service, team, 'member');
const bob = await newPerson(service, team, 'member');
const viewer = await newPerson(service, team, 'viewer');
const agentKey = await service.newKey({ kind: 'agent' });

beforeEach(async () => {
  await db.query('DELETE FROM inbox_items');
});

const begin = [
  { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
  { type: 'turn_started', step_id: 's1', prompt: 'Go.' },
];
const list = async (query = '', key: string | undefined = ada.key) =>
  (await service.ok<ListNotificationsResponse>('GET', `/factory-inbox${query}`, { key })).items;
const kinds = async (key?: string, query = '') => (await list(query, key)).map(({ kind }) => kind);
const only = async (key?: string): Promise<Notification> => (await list('', key))[0] ?? expect.fail('no notification');
const mark = async (action: string, uids: string[], key = ada.key) => {
  const path = `/factory-inbox/notifications/${action}`;
  return (
    await service.ok<MarkNotificationsResponse>('POST', path, { key, body: { notification_uids: uids } })
  ).outcomes.map(({ ok }) => ok);
};
const count = async (key = ada.key) => await service.ok('GET', '/factory-inbox/count', { key });

/** Starts a run of a person, and its agent. */
async function start(body: object = {}, key = ada.key) {
  const execution = await service.claimRun(await service.newRun({ prompt: 'p', ...body }, key));
  await events(execution.runToken, begin);
  return execution;
}
const events = (token: string, sent: readonly object[], from = 1) => service.report(token, sent, from);
const ask = (token: string, request: object = {}) =>
  events(
    token,
    [{ type: 'blocked', step_id: 's1', request: { request_id: 'q1', kind: 'question', title: 'Which?', ...request } }],
    3,
  );
const finish = async (token: string, body: object = { success: true, summary: 'done' }) => {
  await service.ok('POST', '/harness-support/finish-task', { key: token, body });
};
const fail = (token: string) => finish(token, { success: false, summary: 'It broke.' });
const report = async (token: string, artifact_type: string, data: object) => {
  await service.ok('POST', '/harness-support/report-artifact', { key: token, body: { artifact_type, data } });
};
const pull = (n: number) => `https://github.com/acme/shop/pull/${n}`;
const followUp = (runId: string, body: object, key = ada.key) =>
  service.request('POST', `/agent/runs/${runId}/followups`, { key, body });

test('a question asks the person as whom the run acts, with its options, until it is answered', async () => {
  const { runId, runToken } = await start({ title: 'Upgrade <b>it</b>' });
  await ask(runToken, { options: ['4.2', '5.0'] });
  expect(await list()).toEqual([
    {
      notification_uid: expect.any(String),
      factory_uid: null,
      factory_task_uid: null,
      kind: 'answer_question',
      stage: null,
      title: 'Upgrade <b>it</b>',
      description: 'Which?',
      is_read: false,
      recipients: [{ uid: ada.uid }],
      created_at: expect.any(String),
      run_id: runId,
      questions: [{ id: 'q1', question: 'Which?', type: 'single_select', options: ['4.2', '5.0'] }],
    },
  ]);
  expect(await list('', bob.key)).toEqual([]);
  expect(await count()).toEqual({ unread: 1, total: 1 });
  expect((await followUp(runId, { message: '5.0' })).status).toBe(200);
  expect([await list(), await count()]).toEqual([[], { unread: 0, total: 0 }]);
});

test('a question without options, a permission request and a failure have their own kinds', async () => {
  const question = await start();
  await ask(question.runToken);
  expect(await kinds()).toEqual(['question']);
  const permission = await start({ config: { approval_policy: 'ask' } });
  await ask(permission.runToken, { kind: 'permission', title: 'rm -rf build' });
  expect(await kinds()).toEqual(['blocked', 'question']);
  const failed = await start();
  await fail(failed.runToken);
  expect(await kinds()).toEqual(['failed', 'blocked', 'question']);
  expect(await list('?kind=failed')).toMatchObject([{ run_id: failed.runId, description: 'It broke.' }]);
  expect(await kinds(ada.key, '?kind=blocked&kind=question')).toEqual(['blocked', 'question']);
  expect((await followUp(failed.runId, { message: 'Again.' })).status).toBe(200);
  await service.request('POST', `/agent/runs/${permission.runId}/cancel`, { key: ada.key });
  expect(await kinds()).toEqual(['question']);
});

test('if a run fails while it waits for an answer, its failure replaces the question', async () => {
  const { runToken } = await start();
  await ask(runToken);
  await fail(runToken);
  expect(await kinds()).toEqual(['failed']);
});

test('a failure of a child run is for its parent, and a success asks nothing', async () => {
  const { runToken } = await start({ mode: 'orchestrate' });
  const child = await service.request<{ run_id: string }>('POST', '/harness-support/child-runs', {
    key: runToken,
    body: { prompt: 'b' },
  });
  const { runToken: token } = await service.claimRun(child.body.run_id);
  await events(token, begin);
  await fail(token);
  await finish(runToken);
  expect(await list()).toEqual([]);
});

test('a person dismisses and restores, reads and unreads only for himself', async () => {
  const { runToken } = await start();
  await fail(runToken);
  const { notification_uid: uid } = await only();
  expect(await mark('read', [uid, uid.toUpperCase(), 'no uid', crypto.randomUUID()])).toEqual([true, true, true, true]);
  expect([(await only()).is_read, await count()]).toEqual([true, { unread: 0, total: 1 }]);
  expect(await kinds(ada.key, '?is_read=false')).toEqual([]);
  await mark('unread', [uid]);
  expect(await kinds(ada.key, '?is_read=false')).toEqual(['failed']);
  await mark('dismiss', [uid]);
  expect([await list(), await list('?scope=team')]).toEqual([[], []]);
  await mark('restore', [uid]);
  expect(await kinds()).toEqual(['failed']);
});

test('the notification of another person, of another team and of a viewer is neither read nor marked', async () => {
  const { runToken } = await start();
  await ask(runToken);
  const { notification_uid: uid } = await only();
  const path = `/factory-inbox/notifications/${uid}`;
  for (const action of ['read', 'unread', 'dismiss', 'restore']) {
    expect(await mark(action, [uid], bob.key)).toEqual([false]);
    expect(await mark(action, [uid], viewer.key)).toEqual([false]);
    // Another team does not learn whether it exists.
    expect(await mark(action, [uid], service.otherKey)).toEqual([true]);
    const body = { notification_uids: [uid] };
    await service.problem(403, 'POST', `/factory-inbox/notifications/${action}`, { key: agentKey, body });
    await service.problem(401, 'POST', `/factory-inbox/notifications/${action}`, { key: runToken, body });
  }
  expect(await only()).toMatchObject({ notification_uid: uid, is_read: false });
  for (const key of [bob.key, viewer.key]) {
    expect(await list('', key)).toEqual([]);
    expect(await service.ok('GET', path, { key })).not.toHaveProperty('is_read');
  }
  await service.problem(404, 'GET', path, { key: service.otherKey });
  expect(await list('?scope=team', service.otherKey)).toEqual([]);
  await service.problem(401, 'GET', '/factory-inbox', { key: runToken });
  await service.problem(403, 'GET', '/factory-inbox', { key: agentKey });
  await service.problem(403, 'GET', '/factory-inbox/count', { key: agentKey });
  await service.problem(400, 'GET', `/factory-inbox?recipient_uid=${bob.uid}`, { key: ada.key });
  expect(await kinds(agentKey, '?scope=team')).toEqual(['question']);
  expect(await list(`?scope=team&recipient_uid=${bob.uid}`)).toEqual([]);
  const [item] = await list(`?scope=team&recipient_uid=${ada.uid}`, bob.key);
  expect(item).toMatchObject({ recipients: [{ uid: ada.uid }] });
  expect(item).not.toHaveProperty('is_read');
});

test('the administrators are asked if neither executor nor creator is a person, and only to answer', async () => {
  const asks = await service.claimRun(await service.newRun({ prompt: 'p' }, agentKey));
  await events(asks.runToken, begin);
  await ask(asks.runToken);
  expect(await kinds(service.key)).toEqual(['question']);
  expect(await list()).toEqual([]);
  const fails = await service.claimRun(await service.newRun({ prompt: 'p' }, agentKey));
  await events(fails.runToken, begin);
  await fail(fails.runToken);
  expect(await kinds(service.key)).toEqual(['question']);
});

test('a person who left the team is no recipient', async () => {
  const gone = await newPerson(service, team, 'member');
  const first = await start({}, gone.key);
  await ask(first.runToken);
  const second = await start({}, gone.key);
  await service.request('DELETE', `/teams/${team}/members/${gone.uid}`);
  expect(await list('?scope=team', service.key)).toEqual([]);
  await ask(second.runToken);
  expect((await list('?scope=team', service.key)).flatMap(({ recipients }) => recipients)).not.toContainEqual({
    uid: gone.uid,
  });
});

test('a pull request waits for a review until all pull requests of the run are reviewed or closed', async () => {
  const webhook = await signed('github');
  const deliver = async (event: string, payload: object) => {
    const body = JSON.stringify({ ...payload, n: Math.random() });
    const answer = await send(webhook, asGithub(body, { 'x-github-event': event }));
    expect(answer.status, answer.text).toBeLessThan(300);
  };
  const { runId, runToken } = await start();
  for (const n of [1, 2]) await report(runToken, 'PULL_REQUEST', { url: pull(n), branch: `b${n}` });
  await finish(runToken);
  expect(await list()).toMatchObject([{ kind: 'pr_review', run_id: runId, url: pull(1), urls: [pull(1), pull(2)] }]);
  const review = (state: string, type: string) => ({
    action: 'submitted',
    review: { state },
    sender: { type },
    pull_request: { html_url: pull(1) },
  });
  await deliver('pull_request_review', review('commented', 'User'));
  await deliver('pull_request_review', review('approved', 'Bot'));
  await deliver('pull_request', { action: 'opened', pull_request: { html_url: pull(1) } });
  await deliver('pull_request', { action: 'closed', pull_request: { html_url: pull(2) } });
  expect(await kinds()).toEqual(['pr_review']);
  await deliver('pull_request_review', review('approved', 'User'));
  expect(await list()).toEqual([]);
});

test('a plan waits for a review until the run continues', async () => {
  const { runId, runToken } = await start({ mode: 'plan' });
  await report(runToken, 'PLAN', { title: 'P', content: 'p' });
  await finish(runToken);
  expect(await kinds()).toEqual(['spec_review']);
  await followUp(runId, { message: 'Do it.', mode: 'normal' });
  expect(await list()).toEqual([]);
});

test('a task in the stage SPEC waits for a review, and its reviews end with the task', async () => {
  const dispatched = await service.request<{ run_id: string }>('POST', `/factory/${factory.uid}/runs`, {
    key: ada.key,
    body: { prompt: 'Fix it.', ticket_url: 'https://linear.app/BILL-12', ticket_ref: 'linear:BILL-12' },
  });
  const task = await service.request<{ uid: string }>(
    'GET',
    `/factory/${factory.uid}/task-by-run?run_id=${dispatched.body.run_id}`,
  );
  const move = async (stage: string) =>
    await service.request('PATCH', `/factory/${factory.uid}/tasks/${task.body.uid}`, { body: { stage } });
  await move('SPEC');
  const { runToken } = await service.claimRun(dispatched.body.run_id);
  await events(runToken, begin);
  await finish(runToken);
  expect(await list(`?factory_uid=${factory.uid}`)).toMatchObject([
    {
      kind: 'spec_review',
      stage: 'SPEC',
      factory_uid: factory.uid,
      factory_task_uid: task.body.uid,
      origin_link: 'https://linear.app/BILL-12',
    },
  ]);
  expect(await list('?factory_uid=other')).toEqual([]);
  await move('IMPLEMENT');
  expect(await list()).toEqual([]);
});

test('a revision that waits for acceptance is in the inbox, is dismissed and restored, and leaves it when it is accepted', async () => {
  const executor = await newPerson(service, team, 'member');
  await service.request('PUT', '/secrets/MINE', {
    key: executor.key,
    body: { value: 'a personal value', scope: 'personal' },
  });
  const made = await service.request<{ uid: string }>('POST', '/agent/environments', {
    key: bob.key,
    body: { config: { name: 'E', setup_commands: ['make'] } },
  });
  const own = async (): Promise<Notification[]> =>
    (await list('?kind=acceptance', executor.key)).filter(({ acceptance }) => acceptance?.uid === made.body.uid);
  const [item] = await own();
  expect(item).toMatchObject({ kind: 'acceptance', title: 'E', is_read: false, recipients: [{ uid: executor.uid }] });
  const uid = item?.notification_uid ?? '';
  expect((await service.request('GET', `/factory-inbox/notifications/${uid}`, { key: executor.key })).status).toBe(200);
  await service.problem(404, 'GET', `/factory-inbox/notifications/${uid}`, { key: ada.key });
  // The UID of another person has no effect and writes no row.
  expect(await mark('dismiss', [uid], ada.key)).toEqual([true]);
  expect(await db.query('SELECT FROM inbox_items WHERE uid = $1', [uid])).toEqual([]);
  await mark('read', [uid], executor.key);
  expect(await own()).toMatchObject([{ is_read: true }]);
  await mark('dismiss', [uid], executor.key);
  expect(await own()).toEqual([]);
  await mark('restore', [uid], executor.key);
  expect(await own()).toHaveLength(1);
  await service.request('POST', '/acceptances', { key: executor.key, body: item?.acceptance });
  expect(await own()).toEqual([]);
});

test('pages repeat and skip nothing, and a cursor works only for its list', async () => {
  const person = await newPerson(service, team, 'member');
  for (let n = 0; n < 5; n += 1) {
    const { runToken } = await start({}, person.key);
    await fail(runToken);
  }
  const seen: string[] = [];
  let cursor = '';
  do {
    const body = await service.ok<ListNotificationsResponse>('GET', `/factory-inbox?limit=2${cursor}`, {
      key: person.key,
    });
    seen.push(...body.items.map(({ notification_uid }) => notification_uid));
    cursor =
      body.page_info.next_cursor === undefined ? '' : `&cursor=${encodeURIComponent(body.page_info.next_cursor)}`;
    if (cursor && seen.length === 2)
      await service.problem(400, 'GET', `/factory-inbox?limit=2&scope=team${cursor}`, { key: person.key });
  } while (cursor);
  expect([new Set(seen).size, seen]).toEqual([5, [...seen].sort().reverse()]);
});

test('a person with 1,000 notifications gets no further ones of failed runs, but still gets questions', async () => {
  const person: Person = await newPerson(service, team, 'member');
  const { runId, runToken } = await start({}, person.key);
  await db.query(
    `WITH i AS (INSERT INTO inbox_items (team_id, kind, run_id) SELECT $1, 'failed', $2 FROM generate_series(1, 1000) RETURNING uid)
     INSERT INTO inbox_recipients (item_uid, user_uid, team_id) SELECT uid, $3, $1 FROM i`,
    [service.teamId, runId, person.uid],
  );
  expect(await count(person.key)).toEqual({ unread: 1000, total: 1000 });
  const { runToken: second } = await start({}, person.key);
  await fail(second);
  expect(await kinds(person.key, '?limit=1')).toEqual(['failed']);
  expect(await db.query('SELECT FROM inbox_recipients WHERE user_uid = $1', [person.uid])).toHaveLength(1000);
  await ask(runToken);
  expect(await kinds(person.key, '?limit=1')).toEqual(['question']);
});

test('notifications are deleted with their run', async () => {
  const { runId, runToken } = await start();
  await fail(runToken);
  const { notification_uid: uid } = await only();
  expect(await db.query('SELECT FROM inbox_recipients WHERE item_uid = $1', [uid])).toHaveLength(1);
  await db.query('DELETE FROM runs WHERE id = $1', [runId]);
  expect(await db.query('SELECT FROM inbox_recipients WHERE item_uid = $1', [uid])).toEqual([]);
});
