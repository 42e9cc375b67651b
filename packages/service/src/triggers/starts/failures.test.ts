/** Tests automations whose runs cannot be created. */

import type { Factory } from '@runyard/contract/factories/factories';
import type { RunItem } from '@runyard/contract/runs/runs';
import { beforeEach, describe, expect, test } from 'vitest';
import { at, on, testAutomations } from '../../../test/automations.ts';
import { admitGuest } from '../../../test/people.ts';
import { openTestService } from '../../../test/service.ts';
import { testWebhooks } from '../../../test/webhooks.ts';
import { countAtCommit, countNow } from '../automations/failures.ts';
import { fireDueSchedules } from './times/fire.ts';

const service = await openTestService();
const { deps } = service;
const { db } = deps;
const { factory, create: createWebhook, send, log, reset } = await testWebhooks(service);
const { base, create, read, change, makeDue, fireNow, fires } = testAutomations(service, factory.uid);
beforeEach(async () => {
  await db.query('DELETE FROM automations');
  await reset();
});

const newEnvironment = async (key = service.key) =>
  (await service.ok<{ uid: string }>('POST', '/agent/environments', { key, body: { config: { name: 'E' } } })).uid;
const missing =
  'config.environment_id: there is no such environment, or it belongs to another team. List yours with GET /agent/environments.';

describe('an automation whose runs cannot be created', () => {
  test('is disabled after ten failures in a row, of deliveries or schedule times, and starts runs again when a person enables it', async () => {
    const environment_id = await newEnvironment();
    const webhook = await createWebhook();
    const { uid } = await create([on(webhook), at()], { config: { environment_id } });
    const rename = (from: string, to: string) =>
      db.query('UPDATE environments SET uid = $2 WHERE uid = $1', [from, to]);
    const away = 'x'.repeat(22);
    await rename(environment_id, away);
    for (let n = 0; n < 5; n += 1) await send(webhook, { body: `{"n": ${n}}` });
    expect(await read(uid)).toMatchObject({ enabled: true, last_spawn_error: missing });
    // A success resets the number of failures to 0.
    await rename(away, environment_id);
    await fireNow(uid);
    expect((await read(uid)).last_spawn_error).toBeNull();
    await rename(environment_id, away);
    for (let n = 5; n < 10; n += 1) await send(webhook, { body: `{"n": ${n}}` });
    for (let n = 0; n < 4; n += 1) await fireNow(uid);
    expect((await read(uid)).enabled).toBe(true);
    await fireNow(uid);
    const because = `Paused after 10 failures in a row. The last one: ${missing}`;
    const paused = await read(uid);
    expect(paused).toMatchObject({ enabled: false, last_spawn_error: because, schedules: [{ next_run: null }] });
    expect((await fires(uid))[0]).toMatchObject({ outcome: 'failed', reason: missing });
    await send(webhook, { body: '{"n": 10}' });
    expect((await log(webhook))[0]?.automations).toEqual([
      { automation_id: uid, matched: false, reason: `the automation is disabled. ${because}` },
    ]);
    await rename(away, environment_id);
    const resumed = await change(uid, { enabled: true, config: { environment_id } });
    expect(resumed).toMatchObject({
      enabled: true,
      last_spawn_error: null,
      schedules: [{ next_run: expect.any(String) }],
    });
    await fireNow(uid);
    expect((await fires(uid))[0]?.outcome).toBe('started');
  });

  test('has no next time after a delivery has caused the tenth failure', async () => {
    const webhook = await createWebhook();
    const { uid } = await create([on(webhook), at()], { agent: 'foreman' });
    await db.query(`UPDATE automations SET spawn_failures = 9, agent = 'gone' WHERE uid = $1`, [uid]);
    await send(webhook);
    await makeDue(uid);
    await fireDueSchedules(deps);
    await fireDueSchedules(deps);
    expect(await fires(uid)).toMatchObject([
      { outcome: 'skipped', reason: expect.stringContaining('Paused after 10') },
    ]);
  });

  test('because of an internal error delays no other automation, and its schedule is paused with the reason', async () => {
    const bad = await create([at()]);
    const good = await create([at()]);
    // The API never stores such a value. The value makes the code that creates the run throw.
    await db.query(`UPDATE automations SET config = '{"mcp_servers": {"a": null}}' WHERE uid = $1`, [bad.uid]);
    await db.query('UPDATE schedules SET spawn_failures = 9 WHERE automation_uid = $1', [bad.uid]);
    await makeDue(bad.uid, 9);
    await fireNow(good.uid);
    expect((await fires(good.uid)).map(({ outcome }) => outcome)).toEqual(['started']);
    expect(await fires(bad.uid)).toMatchObject([
      { outcome: 'failed', reason: expect.stringContaining('its log has the reason') },
    ]);
    expect((await read(bad.uid)).problems).toEqual([expect.stringContaining('triggers[0]: Paused after 10 failures')]);
    const saved = await change(bad.uid, { config: {} });
    expect(saved).not.toHaveProperty('problems');
    expect(saved.schedules?.[0]?.next_run).not.toBeNull();
  });

  const failed = { reason: missing, counts: true };
  const outage = { reason: 'an outage', counts: false };
  test.each([
    ['several failures and then a success', [failed, failed, null], 0, null],
    ['a success and then failures', [null, failed, failed], 2, missing],
    ['failures around a success', [failed, null, failed], 1, missing],
    ['failures of which one passes by itself', [failed, outage], 1, 'an outage'],
  ])('counts %s of one batch as if they came one by one', async (_, results, count, error) => {
    const { uid } = await create([at()]);
    const counted = async (before: string | null) => {
      await db.transaction(async (tx) => countAtCommit(tx, { uid, last_spawn_error: before }, results));
      return await db.query('SELECT spawn_failures, last_spawn_error FROM automations WHERE uid = $1', [uid]);
    };
    expect(await counted(null)).toEqual([{ spawn_failures: count, last_spawn_error: error }]);
    await db.query(`UPDATE automations SET spawn_failures = 3, last_spawn_error = 'old' WHERE uid = $1`, [uid]);
    const isReset = results.includes(null);
    expect(await counted('old')).toEqual([{ spawn_failures: isReset ? count : 3 + count, last_spawn_error: error }]);
  });

  test('is disabled after ten failures in one batch', async () => {
    const { uid } = await create([at()]);
    await db.transaction(async (tx) => countAtCommit(tx, { uid, last_spawn_error: null }, Array(10).fill(failed)));
    expect((await read(uid)).enabled).toBe(false);
  });

  test('is not disabled by temporary failures', async () => {
    const { uid } = await create([at()]);
    for (let n = 0; n < 12; n += 1) expect(await countNow(db, { uid, last_spawn_error: null }, [outage])).toBe(true);
    expect(await read(uid)).toMatchObject({ enabled: true, last_spawn_error: 'an outage' });
  });
});

test('an automation starts no run in an environment to which its editor has lost access, and the delivery shows the reason', async () => {
  const uid = await newEnvironment(service.otherKey);
  const guest = (await create([at()])).updated_by?.uid;
  await admitGuest(service, uid, { uid: guest ?? '', key: service.key }, { key: service.otherKey });
  const webhook = await createWebhook();
  await create([on(webhook)], { config: { environment_id: uid } });
  await service.request('DELETE', `/agent/environments/${uid}/guests/${guest}`, { key: service.otherKey });
  await send(webhook);
  const [entry] = await log(webhook);
  expect(entry?.label).toBe('ACCEPTED');
  expect(entry?.runs ?? []).toEqual([]);
  expect(entry?.automations?.[0]?.reason).toBe(missing);
  const body = { name: 'B', prompt: 'a', triggers: [on(webhook)], config: { environment_id: uid } };
  await service.problem(403, 'POST', base, { body });
});

describe('the agent of an automation', () => {
  const files = (agents: Record<string, string>) => ({
    files: [
      {
        path: 'factory.yaml',
        content: 'schemaVersion: v1alpha1\nname: F\nrepositories: []\nagentDefaults:\n  model: runbook\n',
      },
      ...Object.entries(agents).map(([name, content]) => ({ path: `agents/${name}/agent.md`, content })),
    ],
  });
  const foreman = '---\nagentType: FOREMAN\n---\n\nDivide the work.\n';
  const apply = (agents: Record<string, string>) =>
    service.request('PUT', `/factory/${factory.uid}/definition`, { body: files({ foreman, ...agents }) });
  const configOfLast = async (uid: string) => {
    const [fire] = await fires(uid);
    return (await service.ok<RunItem>('GET', `/agent/runs/${fire?.run_id}`)).agent_config;
  };

  test('defines the configuration of the run, and members of the automation override it; without an agent, the foreman is used', async () => {
    await apply({ reviewer: '---\nworkerHost: mac\n---\n\nReview.\n' });
    const named = await create([at()], { agent: 'reviewer', config: { idle_timeout_minutes: 3 } });
    expect(named.agent).toBe('reviewer');
    await fireNow(named.uid);
    expect(await configOfLast(named.uid)).toMatchObject({
      base_prompt: 'Review.',
      worker_host: 'mac',
      model_id: 'runbook',
      idle_timeout_minutes: 3,
    });
    const unnamed = await create([at()]);
    await fireNow(unnamed.uid);
    expect(await configOfLast(unnamed.uid)).toMatchObject({ base_prompt: 'Divide the work.' });
  });

  test('must belong to the factory, and must have a configuration that allows the overlap policy', async () => {
    await apply({ reviewer: '---\nworkerHost: mac\n---\n\nReview.\n' });
    const faults = async (members: object) =>
      (await service.problem(400, 'POST', base, { body: { name: 'X', prompt: 'a', triggers: [at()], ...members } }))
        .errors;
    expect(await faults({ agent: 'nobody' })).toMatchObject([
      { path: 'agent', message: expect.stringContaining('has no agent "nobody"') },
    ]);
    expect(await faults({ agent: 'reviewer', overlap: 'cancel_previous' })).toMatchObject([{ path: 'overlap' }]);
    const other = await service.ok<Factory>('POST', '/factory', { body: { name: 'Other' } });
    await service.problem(400, 'POST', `/factory/${other.uid}/automations`, {
      body: { name: 'X', prompt: 'a', triggers: [at()], agent: 'reviewer' },
    });
  });

  test('may be deleted, and the automation then reports why it starts no runs and can be disabled', async () => {
    await apply({ reviewer: '---\n---\n\nReview.\n' });
    const { uid } = await create([at()], { agent: 'reviewer' });
    await apply({});
    const why = expect.stringContaining('agent: the factory has no agent "reviewer"');
    expect((await read(uid)).problems).toEqual([why]);
    await fireNow(uid);
    expect(await fires(uid)).toMatchObject([{ outcome: 'failed', reason: why }]);
    expect(await change(uid, { enabled: false })).toMatchObject({ enabled: false, agent: 'reviewer' });
    await apply({ reviewer: '---\n---\n\nReview.\n' });
    await change(uid, { enabled: true });
    await fireNow(uid);
    expect((await fires(uid))[0]?.outcome).toBe('started');
  });
});
