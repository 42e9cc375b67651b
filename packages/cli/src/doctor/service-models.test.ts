import { parseSettings } from '@runyard/contract/settings/settings';
import type { ListModelsResponse, Model } from '@runyard/contract/team/models';
import { describe, expect, test } from 'vitest';
import { findingAfterRestart, findingOfService } from './service-models.ts';

const model = (id: string, more: Partial<Model> = {}): Model => ({
  id,
  display_name: id,
  provider: 'UNKNOWN',
  vision_supported: false,
  ...more,
});
const off = { disable_reason: 'ADMIN_DISABLED' } as const;
const runbookOnly: ListModelsResponse = {
  default_model_id: 'runbook',
  models: [model('runbook'), model('anthropic/claude', off), model('openai/gpt', off)],
};
const anthropic: ListModelsResponse = {
  default_model_id: 'anthropic/claude',
  models: [model('anthropic/claude'), model('runbook'), model('openai/gpt', off)],
};
const settings = (env: Record<string, string>) => {
  const parsed = parseSettings(env);
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  return parsed.settings;
};

describe('the models of a running service', () => {
  test('are listed by provider, with the default model', () => {
    expect(findingOfService(anthropic)).toMatchObject({
      level: 'good',
      detail: 'running service: Anthropic; default anthropic/claude',
    });
    expect(findingOfService(runbookOnly)).toMatchObject({
      level: 'note',
      detail: expect.stringContaining('`runbook`'),
    });
  });

  test('are shown with the results of the test of the local endpoint', () => {
    const description = 'Context window: 40,960 tokens. Probe at the start: it streams its answer and calls tools.';
    const list = { default_model_id: 'local/qwen3', models: [model('local/qwen3', { description }), model('runbook')] };
    expect(findingOfService(list)).toMatchObject({
      level: 'good',
      detail:
        'running service: your own endpoint; default local/qwen3\nlocal/qwen3 was probed at the start: it streams its answer and calls tools.',
    });
  });

  test('are reported as a fault if the default model cannot be used', () => {
    const description = 'The models of 127.0.0.1:9 are not known: connection refused.';
    const unlisted = model('local/auto', { disable_reason: 'PROVIDER_OUTAGE', description });
    const list = { default_model_id: 'local/auto', models: [unlisted, model('runbook')] };
    expect(findingOfService(list)).toMatchObject({ level: 'bad', detail: expect.stringContaining(description) });
    const here = settings({ RUNYARD_MODEL_BASE_URL: 'http://127.0.0.1:9/v1' });
    expect(findingAfterRestart(list, here), 'the endpoint is the same').toBeNull();
  });
});

describe('the finding about a restart', () => {
  test('is absent if the service was started with the same settings', () => {
    expect(findingAfterRestart(runbookOnly, settings({}))).toBeNull();
    expect(findingAfterRestart(anthropic, settings({ RUNYARD_ANTHROPIC_API_KEY: 'sk-secret' }))).toBeNull();
    const chosen = { RUNYARD_ANTHROPIC_API_KEY: 'sk-secret', RUNYARD_DEFAULT_MODEL: 'claude' };
    expect(findingAfterRestart(anthropic, settings(chosen))).toBeNull();
  });

  test('names each setting that is set only here or only in the service, and shows no key', () => {
    const found = findingAfterRestart(anthropic, settings({ RUNYARD_OPENAI_API_KEY: 'sk-secret' }));
    expect(found?.detail).toContain('adds the models of OpenAI: RUNYARD_OPENAI_API_KEY is set here');
    expect(found?.detail).toContain('removes the models of Anthropic: RUNYARD_ANTHROPIC_API_KEY is set in the service');
    expect(JSON.stringify(found)).not.toContain('sk-secret');
    expect(findingAfterRestart(anthropic, settings({}))?.detail).toContain('makes runs use `runbook`');
  });

  test('names the default model if it would change', () => {
    const here = { RUNYARD_ANTHROPIC_API_KEY: 'k', RUNYARD_DEFAULT_MODEL: 'runbook' };
    expect(findingAfterRestart(anthropic, settings(here))?.detail).toContain(
      'changes the default from anthropic/claude to runbook (RUNYARD_DEFAULT_MODEL)',
    );
  });
});
