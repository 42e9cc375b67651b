/** Tests the inbox at the edges of time and roles. */
import type { ListNotificationsResponse } from '@runyard/contract/inbox/notifications';
import { expect, test } from 'vitest';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { deleteRows, registeredRetention } from '../../../../test/retention.ts';
import { openTestSenders } from '../../../../test/senders.ts';

const { service, signed, asGithub, send } = await openTestSenders();
const { db } = service.deps;
const team = await teamUidOf(service);
const occurred_at = '2026-01-02T03:04:05.000Z';
const list = async (key: string, query = '') =>
  (await service.request<ListNotificationsResponse>('GET', `/factory-inbox${query}`, { key })).body.items;
const post = (key: string, path: string, body: object) =>
  service.request('POST', `/harness-support/${path}`, { key, body });

async function start(key: string) {
  const execution = await service.claimRun(await service.newRun({ prompt: 'p' }, key));
  const started = { type: 'agent_started', harness: 'oz', model_id: 'runbook' };
  const turn = { type: 'turn_started', step_id: 's1', prompt: 'Go.' };
  const events = [started, turn].map((event, index) => ({ seq: index + 1, occurred_at, ...event }));
  await post(execution.runToken, 'events', { events });
  return execution;
}

test('a question of a person who has become a viewer asks the administrators, because a viewer cannot answer', async () => {
  const person = await newPerson(service, team, 'member');
  const { runId, runToken } = await start(person.key);
  await db.query(`UPDATE team_members SET role = 'viewer' WHERE user_id = (SELECT id FROM users WHERE uid = $1)`, [
    person.uid,
  ]);
  const request = { request_id: 'q1', kind: 'question', title: 'Which?' };
  await post(runToken, 'events', { events: [{ seq: 3, occurred_at, type: 'blocked', step_id: 's1', request }] });
  expect((await list(service.key)).map(({ run_id: id }) => id)).toContain(runId);
});

test('repeated reviews of one pull request do not make the row of the notification longer', async () => {
  const webhook = await signed('github');
  const person = await newPerson(service, team, 'member');
  const { runId, runToken } = await start(person.key);
  const pull = (n: number) => `https://github.com/acme/long/pull/${n}`;
  for (const n of [1, 2])
    await post(runToken, 'report-artifact', { artifact_type: 'PULL_REQUEST', data: { url: pull(n), branch: `b${n}` } });
  await post(runToken, 'finish-task', { success: true, summary: 'done' });
  for (let n = 0; n < 4; n += 1) {
    const body = JSON.stringify({ action: 'closed', pull_request: { html_url: pull(1) }, n });
    await send(webhook, asGithub(body, { 'x-github-event': 'pull_request' }));
  }
  expect(await db.query('SELECT done_urls FROM inbox_items WHERE run_id = $1', [runId])).toEqual([
    { done_urls: [pull(1)] },
  ]);
});

test('the nightly sweep keeps the dismissal of a revision that was written long ago', async () => {
  const executor = await newPerson(service, team, 'member');
  const author = await newPerson(service, team, 'member');
  await service.request('PUT', '/secrets/MINE', {
    key: executor.key,
    body: { value: 'a personal value', scope: 'personal' },
  });
  const config = { name: 'Old', setup_commands: ['make'] };
  const made = await service.request<{ uid: string }>('POST', '/agent/environments', {
    key: author.key,
    body: { config },
  });
  await db.query(`UPDATE content_revisions SET created_at = now() - interval '200 days' WHERE uid = $1`, [
    made.body.uid,
  ]);
  const own = async () => (await list(executor.key, '?kind=acceptance')).filter(({ title }) => title === 'Old');
  const uids = (await own()).map(({ notification_uid: uid }) => uid);
  expect(uids).toHaveLength(1);
  await service.request('POST', '/factory-inbox/notifications/dismiss', {
    key: executor.key,
    body: { notification_uids: uids },
  });
  for (const rule of registeredRetention.rows) if (rule.table === 'inbox_items') await deleteRows(db, rule);
  expect(await own()).toEqual([]);
});
