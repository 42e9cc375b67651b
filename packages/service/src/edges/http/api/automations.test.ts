import { randomUUID } from 'node:crypto';
import { Automation } from '@runyard/contract/automations/automations';
import { maxFactoryAutomations } from '@runyard/contract/limits';
import { beforeEach, describe, expect, test } from 'vitest';
import { at } from '../../../../test/automations.ts';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';

const service = await openTestService();
const { db } = service.deps;
const { factory, base: webhooks, create: createWebhook, send } = await testWebhooks(service);
const base = `/factory/${factory.uid}/automations`;
beforeEach(() => db.query('DELETE FROM automations'));

const webhook = await createWebhook();
const triggerOf = (payload?: unknown, uid = webhook.uid) => ({
  provider: 'webhook',
  event: 'received',
  filter: { webhook_ids: [uid], ...(payload === undefined ? {} : { payload }) },
});
const bodyOf = (members: Record<string, unknown> = {}) => ({
  name: 'A',
  prompt: 'Look.',
  triggers: [triggerOf()],
  ...members,
});
const create = async (members?: Record<string, unknown>): Promise<Automation> => {
  const answer = await service.request<Automation>('POST', base, { body: bodyOf(members) });
  if (answer.status !== 201) throw new Error(answer.text);
  return Automation.parse(answer.body);
};
const faultsOf = async (members: Record<string, unknown>) =>
  (await service.problem(400, 'POST', base, { body: bodyOf(members) })).errors;

describe('automations', () => {
  test('are created, listed by name, read, replaced and deleted', async () => {
    const b = await create({ name: 'B', concurrency_key: 'data.id', config: { model_id: 'runbook' } });
    const a = await create({ overlap: 'skip' });
    expect(a).toMatchObject({ enabled: true, overlap: 'skip', triggers: [triggerOf()] });
    expect(a).not.toHaveProperty('problems');
    const list = await service.request<{ automations: Automation[] }>('GET', base);
    expect(list.body.automations).toEqual([a, b]);
    const path = `${base}/${b.uid}`;
    expect(await service.ok('GET', path)).toEqual(b);
    const replaced = await service.request('PUT', path, { body: bodyOf({ name: 'C', enabled: false }) });
    expect(replaced.body).toMatchObject({ uid: b.uid, name: 'C', enabled: false, overlap: 'allow' });
    expect(replaced.body).not.toHaveProperty('concurrency_key');
    expect(replaced.body).not.toHaveProperty('config');
    expect(await service.ok('DELETE', path)).toEqual({ success: true });
    await service.problem(404, 'GET', path);
    await service.problem(404, 'PUT', path, { body: bodyOf({ name: 'D' }) });
    await service.problem(404, 'DELETE', path);
    const [entry] = await db.query(`SELECT action FROM audit_entries ORDER BY id DESC LIMIT 1`);
    expect(entry).toEqual({ action: 'automation.delete' });
  });

  test('have unique names and a maximum number', async () => {
    const { uid } = await create();
    await create({ name: 'B' });
    await service.problem(409, 'POST', base, { body: bodyOf() });
    await service.problem(409, 'PUT', `${base}/${uid}`, { body: bodyOf({ name: 'B' }) });
    await db.query(
      `INSERT INTO automations (uid, factory_uid, team_id, name, prompt, enabled, triggers, config, overlap, concurrency_key, creator_kind,
         creator_uid, editor_kind, editor_uid)
       SELECT 'n' || n, factory_uid, team_id, 'n' || n, prompt, enabled, triggers, config, overlap, concurrency_key,
         creator_kind, creator_uid, editor_kind, editor_uid FROM automations, generate_series(3, $1) n WHERE name = 'A'`,
      [maxFactoryAutomations],
    );
    await service.problem(409, 'POST', base, { body: bodyOf({ name: 'one more' }) });
  });

  test.each<[string, Record<string, unknown>, string]>([
    ['no trigger', { triggers: [] }, 'triggers'],
    ['a blank prompt', { prompt: ' ' }, 'prompt'],
    ['an unknown event', { triggers: [{ provider: 'webhook', event: 'recieved' }] }, 'triggers.0.event'],
    [
      'a webhook trigger without webhooks',
      { triggers: [{ provider: 'webhook', event: 'received' }] },
      'triggers.0.filter',
    ],
    ['a scalar in a filter', { triggers: [triggerOf({ status: 'firing' })] }, 'triggers.0.filter.payload.status'],
    [
      'a filter of GitHub that the event has not',
      { triggers: [{ provider: 'github', event: 'push', filter: { labels: ['a'] } }] },
      'triggers.0.filter.labels',
    ],
    ['a webhook of nobody', { triggers: [triggerOf(undefined, 'A'.repeat(22))] }, 'triggers.0.filter.webhook_ids'],
    ['a NUL in a filter', { triggers: [triggerOf({ a: ['\u0000'] })] }, 'triggers.0'],
    ['a schedule with seconds', { triggers: [at({ cron: '0 0 3 * * *' })] }, 'triggers.0.schedule.cron'],
    ['a schedule that never fires', { triggers: [at({ cron: '0 0 31 2 *' })] }, 'triggers.0.schedule.cron'],
    [
      'a schedule of no time zone',
      { triggers: [at({ cron: '@daily', timezone: 'Mars/Olympus' })] },
      'triggers.0.schedule.timezone',
    ],
    ['two schedules without a name', { triggers: [at(), at()] }, 'triggers.1.schedule'],
    ['an agent of nobody', { agent: 'nobody' }, 'agent'],
    ['an unknown model', { config: { model_id: 'nothing' } }, 'config.model_id'],
    ['an unknown secret', { config: { secrets: [{ name: 'NOPE' }] } }, 'config.secrets'],
    [
      'a worker of its own with cancel_previous',
      { overlap: 'cancel_previous', config: { worker_host: 'mine' } },
      'overlap',
    ],
    ['a path with an empty name', { concurrency_key: 'a..b' }, 'concurrency_key'],
  ])('are refused with %s', async (_what, members, path) => {
    expect((await faultsOf(members))?.map((fault) => fault.path.slice(0, path.length))).toContain(path);
  });

  test('remain after their webhook is deleted, and show why they do not fire', async () => {
    const gone = await createWebhook();
    const { uid } = await create({ triggers: [triggerOf(undefined, gone.uid), { provider: 'linear', event: 'x' }] });
    await service.request('DELETE', `${webhooks}/${gone.uid}`);
    const read = Automation.parse(await service.ok('GET', `${base}/${uid}`));
    expect(read.problems).toEqual([
      `triggers[0]: the webhook ${gone.uid} was deleted`,
      'triggers[1]: this service has no provider linear',
    ]);
    await service.ok('PUT', `${base}/${uid}`, { body: bodyOf({ triggers: read.triggers }) });
  });

  test('are not created by agent keys and viewers', async () => {
    const agent = await service.newKey({ kind: 'agent' });
    await service.problem(403, 'POST', base, { body: bodyOf(), key: agent });
    const viewer = await service.newKey({ role: 'viewer' });
    await service.problem(403, 'POST', base, { body: bodyOf(), key: viewer });
  });
});

describe('POST …/test-filter', () => {
  const path = `${base}/test-filter`;

  test('explains the result for a payload and for a stored delivery, and finds no delivery of another team', async () => {
    const filter = { status: ['firing'] };
    const given = await service.request('POST', path, { body: { filter, payload: { status: 'resolved' } } });
    expect(given.body).toEqual({
      would_trigger: false,
      checks: [{ check: 'in', path: 'status', passed: false, reason: 'found "resolved"; allowed: "firing"' }],
    });
    const { delivery_id } = (await send(webhook, { body: '{"status": "firing"}' })).body;
    const stored = await service.request('POST', path, { body: { filter, delivery_id } });
    expect(stored.body).toMatchObject({ would_trigger: true });
    const other = await service.request<{ uid: string }>('POST', '/factory', { body: { name: 'Other' } });
    await service.problem(404, 'POST', `/factory/${other.body.uid}/automations/test-filter`, {
      body: { filter, delivery_id },
    });
    await service.problem(404, 'POST', path, { body: { filter, delivery_id: randomUUID() } });
  });

  test.each<[string, Record<string, unknown>]>([
    ['a scalar', { filter: { a: 1 }, payload: {} }],
    ['neither payload nor delivery', { filter: {} }],
    ['both', { filter: {}, payload: {}, delivery_id: randomUUID() }],
  ])('answers 400 to %s', async (_what, body) => {
    await service.problem(400, 'POST', path, { body });
  });
});

describe('POST …/test-filter/deliveries', () => {
  const path = `${base}/test-filter/deliveries`;
  const filter = { status: ['firing'] };

  test('shows which of the last stored deliveries match, and why the others do not match', async () => {
    const own = await createWebhook();
    const send_ = async (body: string) => (await send(own, { body })).body.delivery_id;
    const ids = [await send_('{"status":"firing"}'), await send_('{"status":"resolved"}'), await send_('{"n":1}')];
    await send(own, { body: '{' });
    const last = async (limit: number) =>
      await service.ok('POST', path, { body: { filter, webhook_uid: own.uid, limit } });
    const missed = (reason: string) => [{ check: 'in', path: 'status', passed: false, reason }];
    const third = {
      delivery_id: ids[2],
      received_at: expect.any(String),
      would_trigger: false,
      checks: missed('the field is missing; allowed: "firing"'),
    };
    const second = { ...third, delivery_id: ids[1], checks: missed('found "resolved"; allowed: "firing"') };
    const first = { ...third, delivery_id: ids[0], would_trigger: true, checks: [] };
    expect(await last(100)).toEqual({ compared: 3, matched: 1, deliveries: [third, second, first] });
    expect(await last(2)).toMatchObject({ compared: 2, matched: 0 });
  });

  test('compares no more than 8 MB of payloads', async () => {
    const own = await createWebhook();
    await db.query(
      `INSERT INTO webhook_deliveries (id, webhook_uid, team_id, label, size_bytes, identity_hash, payload)
       SELECT gen_random_uuid(), uid, team_id, 'ACCEPTED', 262144, sha256(n::text::bytea), convert_to('"' || repeat('a', 262142) || '"', 'UTF8')
       FROM webhooks, generate_series(1, 40) n WHERE uid = $1`,
      [own.uid],
    );
    const body = { filter, webhook_uid: own.uid, limit: 100 };
    expect(await service.ok('POST', path, { body })).toMatchObject({ compared: 32, matched: 0 });
  });

  test('finds no webhook of another team, and refuses an invalid filter', async () => {
    const other = await service.request<{ uid: string }>('POST', '/factory', { body: { name: 'Other' } });
    const body = { filter, webhook_uid: webhook.uid };
    await service.problem(404, 'POST', `/factory/${other.body.uid}/automations/test-filter/deliveries`, { body });
    await service.problem(404, 'POST', path, { body: { ...body, webhook_uid: 'unknown' } });
    const refused = await service.problem(400, 'POST', path, { body: { ...body, filter: { a: 1 } } });
    expect(refused.errors?.[0]?.path).toMatch(/^filter/);
    await service.problem(400, 'POST', path, { body: { ...body, limit: 101 } });
    await service.problem(413, 'POST', path, { body: { ...body, filter: { a: ['a'.repeat(130 * 1024)] } } });
    const viewer = await service.newKey({ role: 'viewer' });
    await service.problem(403, 'POST', path, { body, key: viewer });
  });
});
