import type { RunItem } from '@runyard/contract/runs/runs';
import type { ListModelsResponse, TeamModelSettings } from '@runyard/contract/team/models';
import { beforeEach, describe, expect, test } from 'vitest';
import { startFakeModels } from '../../../../../../test/fakes/models.ts';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { testSchedules } from '../../../../test/schedules.ts';
import { openTestService } from '../../../../test/service.ts';
import { beginOutage } from '../../../team/models/outages.ts';
import { forgetModelChoices } from '../../../team/models/team-models.ts';
import { fireDueSchedules } from '../../../triggers/starts/times/fire.ts';
import { probeOutages } from '../../gateway/domain.ts';

const fake = closeAtEnd(await startFakeModels());
const service = await openTestService({ env: fake.env });
const { db } = service.deps;
beforeEach(async () => {
  await db.query('DELETE FROM team_models');
  await db.query('DELETE FROM model_outages');
  forgetModelChoices(db);
});

const path = '/agent/model-settings';
const opus = 'anthropic/claude-opus-5-5';
const mini = 'openai/gpt-5-mini';
const change = (body: object, key?: string) =>
  service.request<TeamModelSettings>('PATCH', path, { body, ...(key ? { key } : {}) });
const budget = async (body: object) => {
  expect((await service.request('PATCH', '/budget', { body })).status).toBe(200);
};
const models = async (key = service.key) => await service.ok<ListModelsResponse>('GET', '/agent/models', { key });
const reasonOf = async (id: string, key?: string) =>
  (await models(key)).models.find((model) => model.id === id)?.disable_reason;
const create = (config: object, key = service.key) =>
  service.request<{ run_id: string; detail: string }>('POST', '/agent/runs', { key, body: { prompt: 'a', config } });
const resolve = (key: string) =>
  service.request<{ harness: { model?: { id: string } } }>('POST', '/harness-support/resolve-prompt', {
    key,
    body: {},
  });
const read = async (runId: string) => await service.ok<RunItem>('GET', `/agent/runs/${runId}`);
const ask = (runToken: string, model: string) =>
  service.request('POST', '/gateway/anthropic/v1/messages', {
    key: runToken,
    body: { model, max_tokens: 10, messages: [{ role: 'user', content: 'a' }] },
    headers: { 'anthropic-version': '2023-06-01' },
  });
const switchesOf = async (runId: string) =>
  (
    await service.ok<{ events: { event_type: string; payload?: object }[] }>('GET', `/agent/runs/${runId}/timeline`)
  ).events
    .filter(({ event_type }) => event_type === 'model_switched')
    .map(({ payload }) => payload);

describe('the choices of a team', () => {
  test('give runs without a model the default of the team, until the default is removed', async () => {
    expect((await change({ default_model_id: 'claude-opus-5-5' })).body).toMatchObject({ default_model_id: opus });
    expect((await models()).default_model_id).toBe(opus);
    expect((await models(service.otherKey)).default_model_id).not.toBe(opus);
    expect((await read((await create({})).body.run_id)).model_id).toBe(opus);
    expect((await change({ default_model_id: null })).body.default_model_id).toBeUndefined();
    expect((await models()).default_model_id).not.toBe(opus);
  });

  test('disable a model at create, when a run begins and at the gateway, for this team only', async () => {
    const [working, waiting] = [
      await service.startExecution({ config: { model_id: opus } }),
      await service.startExecution({ config: { model_id: opus } }),
    ];
    expect((await ask(working.runToken, 'claude-opus-5-5')).status).toBe(200);
    expect((await change({ disable: [opus] })).body.disabled_model_ids).toEqual([opus]);
    expect(await reasonOf(opus)).toBe('ADMIN_DISABLED');
    expect(await create({ model_id: opus })).toMatchObject({
      status: 403,
      body: {
        error_code: 'feature_not_available',
        detail: expect.stringContaining('config.model_id: an administrator'),
      },
    });
    expect((await create({ model_id: mini, model_fallbacks: [opus] })).status).toBe(403);
    expect((await ask(working.runToken, 'claude-opus-5-5')).status).toBe(403);
    expect((await resolve(waiting.runToken)).status).toBe(401);
    expect(await read(waiting.runId)).toMatchObject({
      state: 'FAILED',
      status_message: { error_code: 'feature_not_available' },
    });
    expect(await reasonOf(opus, service.otherKey)).toBeUndefined();
    expect((await create({ model_id: opus }, service.otherKey)).status).toBe(200);
    await change({ enable: [opus] });
    expect((await ask(working.runToken, 'claude-opus-5-5')).status).toBe(200);
  });

  test('do not change when an administrator of another team disables models', async () => {
    await change({ disable: [opus], fallback_model_ids: [mini] }, service.otherKey);
    expect(await service.ok(`GET`, path)).toEqual({ fallback_model_ids: [], disabled_model_ids: [] });
    expect(await reasonOf(opus)).toBeUndefined();
  });

  test('stored by another process apply to creates within a second', async () => {
    expect((await create({ model_id: opus })).status).toBe(200);
    const teams = db.query(`INSERT INTO team_models (team_id, disabled_model_ids) SELECT id, $1 FROM teams`, [[opus]]);
    expect(await teams).toEqual([]);
    await expect.poll(async () => (await create({ model_id: opus })).status).toBe(403);
  });

  test('are changed by administrators only', async () => {
    const keys = [await service.newKey({ role: 'member' }), await service.newKey({ kind: 'agent' })];
    for (const key of keys) expect((await change({ disable: [opus] }, key)).status).toBe(403);
  });

  test('keep both of two concurrent changes', async () => {
    await Promise.all([change({ disable: [opus] }), change({ disable: [mini] })]);
    const body = await service.ok<TeamModelSettings>('GET', path);
    expect(body.disabled_model_ids).toEqual([opus, mini]);
  });

  test.each([
    [{ disable: ["'; DROP TABLE teams; --"] }, 'disable.0'],
    [{ disable: ['anthropic/../../etc'] }, 'disable.0'],
    [{ disable: ['anthropic/\u202egpt'] }, 'disable.0'],
    [{ disable: ['__proto__'] }, 'disable.0'],
    [{ disable: ['x'.repeat(301)] }, 'disable.0'],
    [{ disable: ['a\u0000b'] }, 'disable.0'],
    [{ default_model_id: '%2e%2e/claude' }, 'default_model_id'],
    [{ fallback_model_ids: ['runbook'] }, 'fallback_model_ids.0'],
    [{ default_model_id: opus, disable: [opus] }, 'default_model_id'],
    [{ fallback_model_ids: [mini], disable: [mini] }, 'fallback_model_ids'],
  ])('%j is answered 400 and changes nothing', async (body, member) => {
    const { status, body: problem } = await service.request('PATCH', path, { body });
    expect([status, problem]).toEqual([
      400,
      expect.objectContaining({ errors: [expect.objectContaining({ path: member })] }),
    ]);
    expect(await service.ok('GET', path)).toMatchObject({ disabled_model_ids: [], fallback_model_ids: [] });
  });

  test('list no model as ready while the budget of the team is spent', async () => {
    await budget({ monthly_limit_usd: 0 });
    expect(await reasonOf(opus)).toBe('OUT_OF_REQUESTS');
    expect(await reasonOf(opus, service.otherKey)).toBeUndefined();
    await budget({ monthly_limit_usd: null });
    expect(await reasonOf(opus)).toBeUndefined();
  });
});

describe("during an outage of a model's provider", () => {
  const outage = () => beginOutage(db, 'anthropic', 'the provider answered 529');

  test('a create is refused with 503 and a time to try again, except by a schedule', async () => {
    await outage();
    expect(await reasonOf(opus)).toBe('PROVIDER_OUTAGE');
    const refused = await create({ model_id: opus });
    expect(refused).toMatchObject({ status: 503, body: { error_code: 'resource_unavailable', retryable: true } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await create({ model_id: mini })).status).toBe(200);
    const { create: createSchedule, makeDue, fires } = testSchedules(service);
    const schedule = await createSchedule({ agent_config: { model_id: opus } });
    await makeDue(schedule.id);
    await fireDueSchedules(service.deps);
    expect(await fires(schedule.id)).toMatchObject([{ outcome: 'started' }]);
  });

  test('a run begins with its first working fallback, reports the fallback, and returns to its own model after the outage', async () => {
    await outage();
    await beginOutage(db, 'google', 'it fails');
    const fallbacks = ['google/gemini-2.5-flash', mini];
    const run = await service.startExecution({ config: { model_id: opus, model_fallbacks: fallbacks } });
    expect((await resolve(run.runToken)).body.harness.model?.id).toBe(mini);
    expect((await resolve(run.runToken)).body.harness.model?.id).toBe(mini);
    expect(await read(run.runId)).toMatchObject({ model_id: mini, agent_config: { model_id: opus } });
    expect(await switchesOf(run.runId)).toEqual([
      { from_model_id: opus, to_model_id: mini, reason: 'its provider has an outage' },
    ]);
    await db.query('DELETE FROM model_outages');
    expect((await resolve(run.runToken)).body.harness.model?.id).toBe(opus);
    expect((await switchesOf(run.runId)).at(-1)).toMatchObject({ to_model_id: opus });
  });

  test("a run without its own fallbacks has the team's fallbacks, and an empty list means no fallback", async () => {
    await change({ fallback_model_ids: [mini] });
    await outage();
    expect((await create({ model_id: opus })).status).toBe(200);
    expect((await create({ model_id: opus, model_fallbacks: [] })).status).toBe(503);
  });

  test('a harness that needs one protocol does not use a fallback of another protocol', async () => {
    const harness = { type: 'acp', command: ['agent'] };
    expect(await create({ model_id: opus, harness, model_fallbacks: [mini] })).toMatchObject({
      status: 400,
      body: { errors: [{ path: 'config.model_fallbacks.0', message: expect.stringContaining('protocol') }] },
    });
    const other = 'anthropic/claude-haiku-4-5';
    expect((await create({ model_id: opus, harness, model_fallbacks: [other] })).status).toBe(200);
  });

  test('a successful request ends the outage, and so does a probe by one process', async () => {
    const run = await service.startExecution({ config: { model_id: opus } });
    await outage();
    expect((await ask(run.runToken, 'claude-opus-5-5')).status).toBe(200);
    await expect.poll(() => reasonOf(opus)).toBeUndefined();
    await db.query('DELETE FROM model_outages');
    await outage();
    await db.query('UPDATE model_outages SET next_probe_at = clock_timestamp()');
    await Promise.all([probeOutages(service.deps), probeOutages(service.deps)]);
    expect(await reasonOf(opus)).toBeUndefined();
  });
});

describe('a fallback whose price is not known', () => {
  const free = 'local/fake-local-small';
  const chat = (runToken: string) =>
    service.request('POST', '/gateway/openai/v1/chat/completions', {
      key: runToken,
      body: { model: 'gpt-5-mini', messages: [{ role: 'user', content: 'a' }] },
    });

  test('is refused at create under max_cost_usd, and under a budget of the team', async () => {
    const config = { model_id: mini, model_fallbacks: [free] };
    expect(await create({ ...config, max_cost_usd: 1 })).toMatchObject({
      status: 400,
      body: { errors: [{ path: 'config.max_cost_usd', message: expect.stringContaining(free) }] },
    });
    await budget({ monthly_limit_usd: 100 });
    await expect
      .poll(() => create(config))
      .toMatchObject({
        status: 403,
        body: { error_code: 'budget_exceeded', detail: expect.stringContaining(free) },
      });
    await budget({ monthly_limit_usd: null });
    await expect.poll(async () => (await create(config)).status).toBe(200);
  });

  test('is not used by the gateway or by a run that begins while a budget applies', async () => {
    const run = await service.startExecution({ config: { model_id: mini, model_fallbacks: [free] } });
    const before = fake.requests.length;
    const asked = () => fake.requests.slice(before).map(({ provider }) => provider);
    await budget({ monthly_limit_usd: 100 });
    fake.misbehave({ kind: 'status', status: 529 });
    expect((await chat(run.runToken)).status).toBe(529);
    await beginOutage(db, 'openai', 'it fails');
    expect((await resolve(run.runToken)).body.harness.model?.id).toBe(mini);
    expect(asked()).toEqual(['openai']);
    await budget({ monthly_limit_usd: null });
    expect((await resolve(run.runToken)).body.harness.model?.id).toBe(free);
  });
});

test('an agent identity whose model is disabled or has an outage gives the same answers as a request with that model', async () => {
  const body = { name: 'Deployer', base_model: opus };
  const createdIdentity = await service.request<{ uid: string; available: boolean }>('POST', '/agent/identities', {
    body,
  });
  expect(createdIdentity).toMatchObject({ status: 201, body: { available: true } });
  const run = () =>
    service.request('POST', '/agent/runs', { body: { prompt: 'a', agent_identity_uid: createdIdentity.body.uid } });
  await beginOutage(db, 'anthropic', 'it fails');
  expect(await run()).toMatchObject({ status: 503, body: { error_code: 'resource_unavailable' } });
  await change({ disable: [opus] });
  expect(await run()).toMatchObject({ status: 403, body: { error_code: 'feature_not_available' } });
  const read = await service.request('GET', `/agent/identities/${createdIdentity.body.uid}`);
  expect(read.body).toMatchObject({ available: false });
});

test('five requests that fail begin an outage for all runs, and the gateway records the fallback of a run', async () => {
  const allowed = 'anthropic/claude-haiku-4-5';
  const ofOtherTeam = await service.newRun({ config: { model_id: opus, model_fallbacks: [] } }, service.otherKey);
  const alone = await service.claimRun(ofOtherTeam);
  const backed = await service.startExecution({ config: { model_id: opus, model_fallbacks: [allowed] } });
  fake.misbehave({ kind: 'status', status: 529 }, 1);
  expect((await ask(backed.runToken, 'claude-opus-5-5')).status).toBe(200);
  await expect
    .poll(() => switchesOf(backed.runId))
    .toEqual([{ from_model_id: opus, to_model_id: allowed, reason: 'the provider answered 529' }]);
  expect((await ask(backed.runToken, 'claude-opus-5-5')).status).toBe(200);
  expect(fake.requests.at(-1)?.conversation?.model).toBe('claude-haiku-4-5');
  fake.misbehave({ kind: 'status', status: 529 }, 5);
  expect((await ask(backed.runToken, 'claude-haiku-4-5')).status).toBe(529);
  for (let each = 0; each < 3; each++) expect((await ask(alone.runToken, 'claude-opus-5-5')).status).toBe(529);
  await expect.poll(() => reasonOf(opus)).toBe('PROVIDER_OUTAGE');
});
