import { parseSettings } from '@runyard/contract/settings/settings';
import { ListModelsResponse } from '@runyard/contract/team/models';
import { afterEach, describe, expect, it } from 'vitest';
import { type FakeModels, startFakeModels } from '../../../../../test/fakes/models.ts';
import { noChoices } from './choices.ts';
import type { LocalModels } from './local-models.ts';
import { type Models, type OpenModelsOptions, openModels } from './models.ts';
import { upstreamsOf } from './providers.ts';

let fake: FakeModels | undefined;
afterEach(async () => {
  await fake?.close();
  fake = undefined;
});

async function open(env: Record<string, string>, options?: OpenModelsOptions) {
  const parsed = parseSettings(env);
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  return openModels(parsed.settings, options);
}

async function opened(env: Record<string, string>, options?: OpenModelsOptions): Promise<Models> {
  const result = await open(env, options);
  if (!result.ok) throw new Error(result.problems.join('; '));
  return result.models;
}

const anthropic = { RUNYARD_ANTHROPIC_API_KEY: 'sk-ant-secret' };
const at = () => new Date('2026-11-21T00:00:00Z');

describe('a service without any provider', () => {
  it('uses the runbook as the default model, and lists all other models as disabled', async () => {
    const models = await opened({});
    const list = ListModelsResponse.parse(models.list());
    expect(list.default_model_id).toBe('runbook');
    expect(list.models[0]).toMatchObject({ id: 'runbook', provider: 'UNKNOWN' });
    expect(list.models.slice(1).every((model) => model.disable_reason === 'ADMIN_DISABLED')).toBe(true);
    const ofAnthropic = list.models.find(({ provider }) => provider === 'ANTHROPIC');
    expect(ofAnthropic?.description).toBe(
      'no key set; set RUNYARD_ANTHROPIC_API_KEY on the service, or let its owner enter it in the dashboard',
    );
    expect(models.resolve(ofAnthropic?.id)).toMatchObject({
      message: `model ${ofAnthropic?.id}: no key set; set RUNYARD_ANTHROPIC_API_KEY on the service, or let its owner enter it in the dashboard`,
    });
    expect(models.resolve(undefined)).toEqual({ ok: true, model: { id: 'runbook' } });
    expect(models.resolve('auto')).toEqual({ ok: true, model: { id: 'runbook' } });
    expect([undefined, 'auto', 'runbook'].map(models.fallsBackToRunbook)).toEqual([true, true, false]);
  });

  it.each([
    ['anthropic/claude-opus-5-5', 'RUNYARD_ANTHROPIC_API_KEY'],
    ['gpt-5.5', 'RUNYARD_OPENAI_API_KEY'],
    ['google/gemini-2.5-flash', 'RUNYARD_GOOGLE_API_KEY'],
  ])('refuses %s, and names the missing setting', async (id, setting) => {
    const resolved = (await opened({})).resolve(id);
    expect(resolved).toMatchObject({ ok: false, reason: 'not_configured', message: expect.stringContaining(setting) });
  });
});

describe('a service with a key for Anthropic', () => {
  it("uses the provider's first model as the default, and gives the agent the endpoint of this model", async () => {
    const models = await opened(anthropic);
    expect(models.list().default_model_id).toBe('anthropic/claude-sonnet-5-5');
    expect(models.resolve(undefined)).toEqual({
      ok: true,
      model: {
        id: 'anthropic/claude-sonnet-5-5',
        agentModel: {
          id: 'anthropic/claude-sonnet-5-5',
          protocol: 'anthropic',
          provider_model: 'claude-sonnet-5-5',
          gateway_path: '/api/v1/gateway/anthropic/v1',
          vision_supported: true,
        },
      },
    });
  });

  it("lists the provider's models first, with today's price", async () => {
    const list = ListModelsResponse.parse((await opened(anthropic, { now: at })).list());
    expect(list.models[1]).toEqual({
      id: 'anthropic/claude-opus-5-5',
      display_name: 'Claude Opus 5.5',
      provider: 'ANTHROPIC',
      vision_supported: true,
      description: 'Context window: 1,000,000 tokens. Reasoning levels: low, medium, high, xhigh, max.',
      cost: { input_usd_per_mtok: 4, output_usd_per_mtok: 20 },
    });
    expect(JSON.stringify(list)).not.toContain('secret');
  });

  it.each([
    'claude-haiku-4-5',
    'claude-haiku-4-5-20251001',
    'anthropic/claude-haiku-4-5-20251001',
    ' anthropic/claude-haiku-4-5 ',
  ])('accepts %j as the id of a model', async (id) => {
    expect((await opened(anthropic)).resolve(id)).toMatchObject({
      ok: true,
      model: { id: 'anthropic/claude-haiku-4-5' },
    });
  });

  it.each([
    ['opus', 'anthropic/claude-opus-5-5'],
    ['sonnet', 'anthropic/claude-sonnet-5-5'],
    ['haiku', 'anthropic/claude-haiku-5-5'],
    ['claude-4-5-haiku', 'anthropic/claude-haiku-4-5'],
  ])('reads the public name %s as %s', async (name, id) => {
    expect((await opened(anthropic)).resolve(name)).toMatchObject({ ok: true, model: { id } });
  });

  it('resolves opus to the newest Opus model, and refuses opus while an administrator has disabled this model', async () => {
    const models = await opened({ ...anthropic, RUNYARD_MODELS: 'anthropic/claude-opus-12' });
    const id = 'anthropic/claude-opus-12';
    expect(models.resolve('opus')).toMatchObject({ ok: true, model: { id } });
    expect(models.resolve('opus', { ...noChoices, disabledIds: [id] })).toMatchObject({
      ok: false,
      reason: 'disabled',
    });
  });

  it.each([
    ['auto-genius', true],
    ['grok-4-5-high', true],
    ['gpt-5-6-terra', true],
    ['gpt-5.2-codex', true],
    ['claude-opsu-5-5', false],
    ['my-model', false],
    ['runbok', false],
  ])('decides whether the public service may offer %s: %s', async (name, isLacking) => {
    expect((await opened(anthropic)).resolve(name)).toMatchObject({ ok: false, isLacking });
  });

  it('refuses an unknown model, and suggests similar models', async () => {
    const resolved = (await opened(anthropic)).resolve('claude-opus-5.5');
    expect(resolved).toMatchObject({
      ok: false,
      reason: 'unknown',
      suggestions: expect.arrayContaining(['anthropic/claude-opus-5-5']),
    });
    expect((await opened(anthropic)).resolve('x'.repeat(100_000))).toMatchObject({ ok: false, suggestions: [] });
  });

  it('lets a run continue with a model that is not listed any more; the model then has no price', async () => {
    const target = (await opened(anthropic)).target('anthropic/claude-of-last-year');
    expect(target).toMatchObject({ providerModel: 'claude-of-last-year', price: undefined });
    expect((await opened(anthropic)).target('openai/gpt-5.5')).toBeUndefined();
    expect((await opened(anthropic)).target('runbook')).toBeUndefined();
  });
});

describe('RUNYARD_MODELS', () => {
  it('adds models without a price', async () => {
    const models = await opened({ ...anthropic, RUNYARD_MODELS: 'anthropic/claude-next, openai/o9' });
    const list = models.list().models;
    expect(list.find((model) => model.id === 'anthropic/claude-next')).toMatchObject({ provider: 'ANTHROPIC' });
    expect(list.find((model) => model.id === 'anthropic/claude-next')).not.toHaveProperty('cost');
    expect(list.find((model) => model.id === 'openai/o9')?.disable_reason).toBe('ADMIN_DISABLED');
    expect(models.resolve('claude-next')).toMatchObject({ ok: true, model: { id: 'anthropic/claude-next' } });
  });

  it('refuses an id without a provider, and names this id', async () => {
    const result = await open({ RUNYARD_MODELS: 'gpt-5.5' });
    expect(result).toEqual({
      ok: false,
      problems: [expect.stringMatching(/^RUNYARD_MODELS: "gpt-5.5" must begin with/)],
    });
  });
});

describe('RUNYARD_DEFAULT_MODEL', () => {
  it.each(['claude-opus-5-5', 'runbook'])('makes %s the default model', async (id) => {
    const models = await opened({ ...anthropic, RUNYARD_DEFAULT_MODEL: id });
    expect(models.list().default_model_id).toContain(id);
    expect(models.resolve('auto')).toMatchObject({ ok: true, model: { id: models.list().default_model_id } });
  });

  it.each([
    ['claude-opus-55', 'did you mean'],
    ['gpt-5.5', 'RUNYARD_OPENAI_API_KEY'],
    ['auto', 'must name a model'],
    ['local/x', 'RUNYARD_MODEL_BASE_URL'],
  ])('with the value %s stops the start of the service, with the reason', async (id, reason) => {
    const result = await open({ ...anthropic, RUNYARD_DEFAULT_MODEL: id });
    expect(result).toEqual({ ok: false, problems: [expect.stringMatching(/^RUNYARD_DEFAULT_MODEL: /)] });
    expect(result.ok ? '' : result.problems.join()).toContain(reason);
  });
});

describe('RUNYARD_MODEL_BASE_URL', () => {
  it("offers the models that the endpoint lists, and requests the list with the endpoint's key", async () => {
    fake = await startFakeModels();
    const { RUNYARD_MODEL_BASE_URL = '', RUNYARD_MODEL_KEY = '' } = fake.env;
    const models = await opened({ RUNYARD_MODEL_BASE_URL, RUNYARD_MODEL_KEY });
    expect(models.list().default_model_id).toBe('local/fake-local');
    expect(models.resolve('fake-local-small')).toMatchObject({
      ok: true,
      model: {
        agentModel: {
          protocol: 'openai-compatible',
          provider_model: 'fake-local-small',
          gateway_path: '/api/v1/gateway/local/v1',
        },
      },
    });
    expect(models.resolve('local/other')).toMatchObject({ ok: false, reason: 'unknown' });
  });

  it('lists models that the endpoint adds later', async () => {
    fake = await startFakeModels();
    let clock = 1_000_000;
    const { RUNYARD_MODEL_BASE_URL = '', RUNYARD_MODEL_KEY = '' } = fake.env;
    const models = await opened({ RUNYARD_MODEL_BASE_URL, RUNYARD_MODEL_KEY }, { now: () => new Date(clock) });
    fake.localModels.push('org/added');
    models.list();
    expect(models.resolve('local/org/added').ok).toBe(false);
    clock += 61_000;
    models.list();
    await expect
      .poll(() => models.resolve('local/org/added'))
      .toMatchObject({ ok: true, model: { agentModel: { provider_model: 'org/added' } } });
  });

  it('lets the service start while the endpoint is down, and logs the failure', async () => {
    const gone = await startFakeModels();
    await gone.close();
    const said: unknown[] = [];
    const log = { info: () => {}, warn: (fields: object) => void said.push(fields) };
    const models = await opened(
      { RUNYARD_MODEL_BASE_URL: `${gone.url}/v1`, RUNYARD_DEFAULT_MODEL: 'local/llama' },
      { log },
    );
    expect(said).toEqual([{ reason: 'it cannot be reached: connection refused (ECONNREFUSED)' }]);
    expect(models.list().default_model_id).toBe('local/llama');
    expect(models.resolve('local/anything')).toMatchObject({ ok: true });
  });

  it.each([
    [{ ok: false, reason: 'it answered 500' } as const, 'local/llama'],
    [{ ok: true, ids: [] } as const, undefined],
  ])('with an endpoint that answers %j leads to the default model %s', async (answer, id) => {
    const fetchLocal = async () => ({ ...answer, ids: [] });
    const env = { RUNYARD_MODEL_BASE_URL: 'http://127.0.0.1:1/v1', RUNYARD_MODELS: 'local/llama' };
    const models = await opened(id === undefined ? { RUNYARD_MODEL_BASE_URL: env.RUNYARD_MODEL_BASE_URL } : env, {
      fetchLocal,
    });
    expect(models.list().default_model_id).toBe(id ?? 'local/auto');
  });

  it("never replaces the endpoint's models by the runbook, and gives a run the first model as soon as the endpoint lists it", async () => {
    const answers: LocalModels[] = [
      { ok: false, reason: 'it cannot be reached (ECONNREFUSED)' },
      { ok: false, reason: 'it cannot be reached (ECONNREFUSED)' },
      { ok: true, ids: [] },
      { ok: true, ids: ['qwen', 'llama'] },
    ];
    const fetchLocal = async () => answers.shift() ?? { ok: true as const, ids: [] };
    const models = await opened({ RUNYARD_MODEL_BASE_URL: 'http://user:secret@127.0.0.1:9/v1' }, { fetchLocal });
    expect(models.resolve(undefined)).toEqual({ ok: true, model: { id: 'local/auto' } });
    expect(ListModelsResponse.parse(models.list()).models[0]).toMatchObject({
      id: 'local/auto',
      disable_reason: 'PROVIDER_OUTAGE',
      description: expect.stringContaining('127.0.0.1:9'),
    });
    expect(models.fallsBackToRunbook(undefined)).toBe(false);
    const refused = await models.resolveForTask('local/auto');
    expect(refused).toEqual({
      ok: false,
      reason: 'unreachable',
      message: expect.stringMatching(/127\.0\.0\.1:9 .*RUNYARD_MODEL_BASE_URL.*ECONNREFUSED/),
    });
    expect(JSON.stringify([refused, models.list()])).not.toContain('secret');
    expect(await models.resolveForTask('local/auto')).toMatchObject({
      ok: false,
      message: expect.stringContaining('lists no model'),
    });
    expect(await models.resolveForTask('local/auto')).toMatchObject({
      ok: true,
      model: { agentModel: { id: 'local/qwen', provider_model: 'qwen' } },
    });
    expect(models.resolve('auto')).toMatchObject({ ok: true, model: { id: 'local/qwen' } });
  });

  it('makes the service refuse a default model that the endpoint does not have', async () => {
    fake = await startFakeModels();
    const { RUNYARD_MODEL_BASE_URL = '', RUNYARD_MODEL_KEY = '' } = fake.env;
    const result = await open({ RUNYARD_MODEL_BASE_URL, RUNYARD_MODEL_KEY, RUNYARD_DEFAULT_MODEL: 'local/fake-loca' });
    expect(result).toEqual({ ok: false, problems: [expect.stringContaining('did you mean local/fake-local')] });
  });
});

it('the service finds the API of each provider with or without the version in the configured base URL', () => {
  const parsed = parseSettings({
    ...anthropic,
    RUNYARD_ANTHROPIC_BASE_URL: 'https://proxy.example/v1/',
    RUNYARD_GOOGLE_API_KEY: 'x',
  });
  if (!parsed.ok) throw new Error(parsed.problems.join());
  const upstreams = upstreamsOf(parsed.settings);
  expect(upstreams.anthropic?.baseUrl).toBe('https://proxy.example/v1');
  expect(upstreams.google?.baseUrl).toBe('https://generativelanguage.googleapis.com/v1beta');
  expect(upstreams.openai).toBeUndefined();
});
