import type { ListNotificationsResponse } from '@runyard/contract/inbox/notifications';
import type { TeamBudget } from '@runyard/contract/team/budgets';
import { expect, test } from 'vitest';
import { on, testAutomations } from '../../../../test/automations.ts';
import { testEventSubscriptions } from '../../../../test/event-subscriptions.ts';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { scheduleBase, testSchedules } from '../../../../test/schedules.ts';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import { noteBudgets } from '../../../runs/inbox/budgets.ts';
import { countFailures } from '../../../triggers/starts/count-failures.ts';
import { fireDueSchedules } from '../../../triggers/starts/times/fire.ts';

const service = await openTestService();
const { deps } = service;
const { db } = deps;
const team = await teamUidOf(service);
const admin = { key: service.key };
const [ada, bob] = [await newPerson(service, team, 'member'), await newPerson(service, team, 'member')];
const agentKey = await service.newKey({ kind: 'agent' });
const schedules = testSchedules(service);
const webhooks = await testWebhooks(service);
const automations = testAutomations(service, webhooks.factory.uid);
const subscriptions = testEventSubscriptions(service);

const at = '2026-01-02T03:04:05.000Z';
const inbox = async ({ key }: { key: string }) =>
  (await service.ok<ListNotificationsResponse>('GET', '/factory-inbox', { key })).items;
const kinds = async (person: { key: string }) => (await inbox(person)).map(({ kind }) => kind);
const empty = () => db.query('DELETE FROM inbox_items');
const events = async (id: string) => {
  const rows = await db.query<{ event: string; data: Record<string, unknown> }>(
    'SELECT event, data FROM event_deliveries WHERE subscription_id = $1 ORDER BY id',
    [id],
  );
  return rows.map(({ event, data }) => ({ event, ...data }));
};
const count = () => countFailures({ db, log: deps.log }, new Map());

/** Claims a run and starts its agent. */
async function begin(runId: string) {
  const { runToken } = await service.claimRun(runId);
  await send(runToken, 1, [
    { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
    { type: 'turn_started', step_id: 's1', prompt: 'Go.' },
  ]);
  return runToken;
}
const send = (key: string, from: number, sent: readonly object[]) =>
  service.report(
    key,
    sent.map((event, index) => ({ seq: from + index, occurred_at: at, ...event })),
  );
const end = async (runId: string, success: boolean) => {
  const key = await begin(runId);
  const body = { success, summary: success ? 'done' : 'The <b>tests</b> fail.' };
  expect((await service.request('POST', '/harness-support/finish-task', { key, body })).status).toBeLessThan(300);
};
const start = async (id: string) => (await service.ok<{ run_id: string }>('POST', `${scheduleBase}/${id}/run`)).run_id;

test('a failed run of a schedule notifies the named people and subscriptions, with ids and without texts', async () => {
  await empty();
  const subscription = await subscriptions.create();
  const notify = [{ on: 'failed', to: [ada.uid, subscription.id] }];
  const { id } = await schedules.create({ notify });
  expect((await schedules.read(id)).notify).toEqual(notify);
  const runId = await start(id);
  await end(runId, false);
  expect(await inbox(ada)).toMatchObject([{ kind: 'failed', run_id: runId, description: 'The <b>tests</b> fail.' }]);
  expect(await kinds(bob)).toEqual([]);
  // The executor is notified without a rule.
  expect(await kinds(admin)).toEqual(['failed']);
  const [delivery, ...others] = (await events(subscription.id)).filter(({ event }) => event === 'notification');
  expect([delivery, others]).toEqual([
    {
      event: 'notification',
      on: 'failed',
      run_id: runId,
      state: 'FAILED',
      schedule_id: id,
      conversation_id: expect.any(String),
    },
    [],
  ]);
});

test('a question of a run asks also the people whom needs_answer names', async () => {
  await empty();
  const { id } = await schedules.create({ notify: [{ on: 'needs_answer', to: [bob.uid] }] });
  const key = await begin(await start(id));
  const request = { request_id: 'q1', kind: 'question', title: 'Which?' };
  await send(key, 3, [{ type: 'blocked', step_id: 's1', request }]);
  expect([await kinds(bob), await kinds(ada), await kinds(admin)]).toEqual([['question'], [], ['question']]);
});

test('a question of a run of a suspended person asks the people of the rules, or else the administrators', async () => {
  await empty();
  const gone = await newPerson(service, team, 'member');
  const { id } = await schedules.create({ notify: [{ on: 'needs_answer', to: [bob.uid] }] });
  const started = async (path: string, body: object) =>
    (await service.ok<{ run_id: string }>('POST', path, { key: gone.key, body })).run_id;
  const ofSchedule = await begin(await started(`${scheduleBase}/${id}/run`, {}));
  const own = await begin(await started('/agent/runs', { prompt: 'Go.' }));
  await db.query(
    `INSERT INTO sign_on_identities (id, issuer, subject, user_id, vault_key_id, confirmed_until)
     SELECT gen_random_uuid(), 'https://sso.example', uid, id, '', now() - interval '1 hour' FROM users WHERE uid = $1`,
    [gone.uid],
  );
  const request = { request_id: 'q1', kind: 'question', title: 'Which?' };
  await send(ofSchedule, 3, [{ type: 'blocked', step_id: 's1', request }]);
  expect([await kinds(bob), await kinds(admin)]).toEqual([['question'], []]);
  await send(own, 3, [{ type: 'blocked', step_id: 's1', request }]);
  expect([await kinds(bob), await kinds(admin)]).toEqual([['question'], ['question']]);
});

test('failed_times notifies once at the number of failed runs in a row, and a success resolves it', async () => {
  await empty();
  const subscription = await subscriptions.create();
  const { id } = await schedules.create({
    notify: [{ on: 'failed_times', times: 3, to: [ada.uid, subscription.id] }],
  });
  for (const success of [false, true, false, false]) {
    await end(await start(id), success);
    await count();
  }
  expect(await kinds(ada)).toEqual([]);
  const third = await start(id);
  await end(third, false);
  // Two processes count at the same time.
  await Promise.all([count(), count()]);
  expect(await inbox(ada)).toMatchObject([
    {
      kind: 'failed_times',
      schedule_id: id,
      title: 'Nightly',
      description: expect.stringContaining('3 runs in a row'),
    },
  ]);
  const sent = (await events(subscription.id)).filter(({ event }) => event === 'notification');
  expect(sent).toEqual([{ event: 'notification', on: 'failed_times', schedule_id: id, count: 3, run_id: third }]);
  await end(await start(id), true);
  expect(await kinds(ada)).toEqual([]);
  expect(await db.query('SELECT FROM uncounted_failures')).toEqual([]);
});

test('a schedule is paused and its executor is notified after 10 failed runs in a row, and resuming sets the count to 0', async () => {
  await empty();
  const { id } = await schedules.create();
  for (let n = 0; n < 10; n += 1) await end(await start(id), false);
  await count();
  const paused = await schedules.read(id);
  expect([paused.enabled, paused.history?.next_run]).toEqual([false, null]);
  expect(paused.last_spawn_error).toContain('Paused after 10 runs in a row failed. The last one: The <b>tests</b>');
  expect((await inbox(admin)).find(({ kind }) => kind === 'failed_times')).toMatchObject({
    schedule_id: id,
    description: expect.stringContaining('Paused after 10 runs'),
  });
  expect((await service.request('POST', `${scheduleBase}/${id}/resume`)).status).toBe(200);
  await end(await start(id), false);
  await count();
  expect((await schedules.read(id)).enabled).toBe(true);
});

test('an automation is disabled after 10 runs in a row failed; a run that only carries its metadata does not count', async () => {
  await empty();
  const webhook = await webhooks.create();
  const { uid } = await automations.create([on(webhook)], { notify: [{ on: 'failed', to: [bob.uid] }] });
  const forged = await service.newRun({ prompt: 'p', metadata: { automation_id: uid } }, ada.key);
  await end(forged, false);
  expect(await kinds(bob)).toEqual([]);
  for (let n = 0; n < 10; n += 1) {
    await webhooks.send(webhook, { body: `{"n":${n}}` });
    const [run] = await db.query<{ id: string }>("SELECT id FROM runs WHERE state = 'QUEUED'");
    await end(run?.id ?? '', false);
    if (n < 9) await count();
  }
  expect((await automations.read(uid)).enabled).toBe(true);
  expect((await kinds(bob)).length).toBe(10);
  await count();
  expect(await automations.read(uid)).toMatchObject({
    enabled: false,
    last_spawn_error: expect.stringContaining('Disabled after 10 runs in a row failed'),
  });
});

test('missed times are found after an outage, and a start that fails is missed', async () => {
  await empty();
  const { id } = await schedules.create({
    cron_schedule: '*/10 * * * *',
    notify: [{ on: 'missed', to: [ada.uid] }],
  });
  await schedules.makeDue(id, 3_600);
  await fireDueSchedules(deps);
  expect(await inbox(ada)).toMatchObject([
    { kind: 'missed', schedule_id: id, description: expect.stringMatching(/^[567] times after .* passed/) },
  ]);
  await db.query('UPDATE schedules SET agent_config = \'{"environment_id": "no such environment"}\' WHERE id = $1', [
    id,
  ]);
  await schedules.makeDue(id);
  await fireDueSchedules(deps);
  const found = await inbox(ada);
  expect(found).toHaveLength(1);
  expect(found[0]?.description).toContain('environment');
  // Without rules, the executor is notified.
  const other = await schedules.create({ cron_schedule: '*/10 * * * *' });
  await schedules.makeDue(other.id, 3_600);
  await fireDueSchedules(deps);
  expect(await inbox(admin)).toMatchObject([{ kind: 'missed', schedule_id: other.id }]);
});

test('a used-up budget notifies once, and raising it resolves the notification', async () => {
  await empty();
  const put = (body: object) => service.request<TeamBudget>('PATCH', '/budget', { body });
  const notify = [{ on: 'budget', to: [ada.uid] }];
  expect((await put({ credits: 0, notify })).body).toMatchObject({ notify });
  await Promise.all([noteBudgets(db), noteBudgets(db)]);
  await noteBudgets(db);
  expect(await inbox(ada)).toMatchObject([{ kind: 'budget', description: 'The team has no credits left.' }]);
  await put({ credits: 100 });
  await noteBudgets(db);
  expect(await kinds(ada)).toEqual([]);
  await put({ credits: null, notify: [] });
  expect(await service.ok<TeamBudget>('GET', '/budget')).not.toHaveProperty('notify');
});

test('rules name only members and subscriptions of the team, and only administrators add subscriptions', async () => {
  const subscription = await subscriptions.create();
  const outsider = await newPerson(service, await teamUidOf(service, service.otherKey), 'member', service.otherKey);
  const foreign = await service.request<{ id: string }>('POST', '/event-subscriptions', {
    key: service.otherKey,
    body: { url: 'https://hooks.example.com/other', events: ['run.created'] },
  });
  const body = (to: string[], more: object = {}) => ({
    name: 'N',
    cron_schedule: '@daily',
    prompt: 'p',
    notify: [{ on: 'failed', to }],
    ...more,
  });
  const refused = async (key: string, to: string[], more: object = {}) =>
    (await service.problem(400, 'POST', scheduleBase, { key, body: body(to, more) })).errors?.[0];
  expect(await refused(service.key, ['Zz9999999999999999999z'])).toEqual({
    path: 'notify.0.to.0',
    message: 'no member of the team has the UID Zz9999999999999999999z',
  });
  expect((await refused(service.key, [outsider.uid]))?.path).toBe('notify.0.to.0');
  expect((await refused(service.key, [foreign.body.id]))?.message).toContain('no event subscription');
  for (const key of [ada.key, agentKey])
    expect((await refused(key, [subscription.id]))?.message).toContain('only administrators');
  expect((await refused(ada.key, [bob.uid], { team: false }))?.message).toContain('only its person');
  expect((await refused(service.key, [ada.uid], { notify: [{ on: 'failed_times', to: [ada.uid] }] }))?.path).toBe(
    'notify.0.times',
  );
  await service.problem(400, 'PATCH', '/budget', { body: { notify: [{ on: 'failed', to: [ada.uid] }] } });

  // A member may send the subscription back that an administrator has added, and an absent member changes nothing.
  const { id } = await schedules.create({ notify: [{ on: 'failed', to: [subscription.id] }] });
  const change = (more: object) =>
    service.request('PUT', `${scheduleBase}/${id}`, {
      key: ada.key,
      body: { name: 'N', cron_schedule: '@daily', prompt: 'p', ...more },
    });
  expect((await change({ notify: [{ on: 'failed', to: [subscription.id, bob.uid] }] })).status).toBe(200);
  expect((await change({})).status).toBe(200);
  expect((await schedules.read(id)).notify).toEqual([{ on: 'failed', to: [subscription.id, bob.uid] }]);
  expect((await change({ notify: [] })).status).toBe(200);
  expect(await schedules.read(id)).not.toHaveProperty('notify');
});

test('people who left, and disabled or deleted subscriptions, are skipped', async () => {
  await empty();
  const gone = await newPerson(service, team, 'member');
  const [disabled, deleted] = [await subscriptions.create(), await subscriptions.create()];
  const { id } = await schedules.create({
    notify: [{ on: 'failed', to: [gone.uid, ada.uid, disabled.id, deleted.id] }],
  });
  await service.request('DELETE', `/teams/${team}/members/${gone.uid}`);
  await service.request('PATCH', `/event-subscriptions/${disabled.id}`, { body: { enabled: false } });
  await service.request('DELETE', `/event-subscriptions/${deleted.id}`);
  await end(await start(id), false);
  expect(await kinds(ada)).toEqual(['failed']);
  expect(await db.query('SELECT FROM inbox_recipients WHERE user_uid = $1', [gone.uid])).toEqual([]);
  expect((await events(disabled.id)).filter(({ event }) => event === 'notification')).toEqual([]);
  // A deleted schedule takes its rules and notifications with it.
  await service.request('DELETE', `${scheduleBase}/${id}`);
  expect(await db.query('SELECT FROM notify_rules WHERE schedule_id = $1', [id])).toEqual([]);
});

test('a definition file sets the rules of an automation, the plan shows them, and without them they are removed', async () => {
  await empty();
  const factory = await service.request<{ uid: string }>('POST', '/factory', { body: { name: 'Defined' } });
  const base = `/factory/${factory.body.uid}`;
  const files = (notify: string) => [
    {
      path: 'factory.yaml',
      content: 'schemaVersion: v1alpha1\nname: Defined\nrepositories: []\nagentDefaults:\n  model: runbook\n',
    },
    { path: 'agents/foreman/agent.md', content: '---\nagentType: FOREMAN\n---\n' },
    {
      path: 'automations/nightly/automation.md',
      content: `---\ntriggers:\n  - provider: schedule\n    event: cron_fired\n    schedule:\n      cron: "@daily"\n${notify}---\nTidy up.`,
    },
  ];
  const apply = (notify: string) => service.request('PUT', `${base}/definition`, { body: { files: files(notify) } });
  const rules = async () =>
    (await service.ok<{ automations: { notify?: unknown }[] }>('GET', `${base}/automations`)).automations.map(
      ({ notify }) => notify,
    );
  const withAda = `notify:\n  - on: failed\n    to: [${ada.uid}]\nretry:\n  on: [checks_failed]\n  max: 2\n  backoffSeconds: 5\n`;
  expect((await apply('')).status).toBe(200);
  const plan = await service.request('POST', `${base}/definition/plan`, { body: { files: files(withAda) } });
  expect(plan.text).toContain('"member":"notify"');
  expect((await apply(withAda)).status).toBe(200);
  expect(await service.ok('GET', `${base}/automations`)).toMatchObject({
    automations: [{ config: { retry: { on: ['checks_failed'], max: 2, backoff_seconds: 5 } } }],
  });
  expect(await rules()).toEqual([[{ on: 'failed', to: [ada.uid] }]]);
  const refused = await apply('notify:\n  - on: failed\n    to: [Zz9999999999999999999z]\n');
  expect([refused.status, refused.text]).toEqual([422, expect.stringContaining('no member of the team')]);
  expect(await rules()).toEqual([[{ on: 'failed', to: [ada.uid] }]]);
  expect((await apply('')).status).toBe(200);
  expect(await rules()).toEqual([undefined]);
});

test('a run that only claims to be of an automation does not resolve the failures of the automation', async () => {
  await empty();
  const { uid } = await automations.create([on(await webhooks.create())]);
  await db.query(
    `WITH item AS (INSERT INTO inbox_items (team_id, kind, automation_uid, about)
       VALUES ((SELECT id FROM teams WHERE uid = $1), 'failed_times', $2, '{"title": "A", "description": "5 runs"}') RETURNING uid, team_id)
     INSERT INTO inbox_recipients (item_uid, user_uid, team_id) SELECT uid, $3, team_id FROM item`,
    [team, uid, ada.uid],
  );
  await end(await service.newRun({ prompt: 'p', metadata: { automation_id: uid } }, agentKey), true);
  expect(await kinds(ada)).toEqual(['failed_times']);
});
