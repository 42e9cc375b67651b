import { presetTypes } from '@runyard/contract/agent/harness-presets/preset';
import { presets } from '@runyard/contract/agent/harness-presets/presets';
import { expect, test } from 'vitest';
import { checkHarness, presetProblem } from './request-harness.ts';

const models = {
  anthropic: { id: 'anthropic/claude-opus-4-5', protocol: 'anthropic', providerModel: 'claude-opus-4-5' },
  'openai-responses': { id: 'openai/gpt-5.2', protocol: 'openai-responses', providerModel: 'gpt-5.2' },
  google: { id: 'google/gemini-2.5-pro', protocol: 'google', providerModel: 'gemini-2.5-pro' },
  'openai-compatible': { id: 'local/qwen3', protocol: 'openai-compatible', providerModel: 'qwen3' },
} as const;

test.each(presetTypes)(
  '%s may use exactly the models whose protocol it supports, and a refusal lists these models',
  (type) => {
    const preset = presets[type];
    for (const [protocol, model] of Object.entries(models)) {
      const problem = presetProblem(preset, model);
      if (protocol in preset.speaks) expect(problem).toBeUndefined();
      else expect(problem).toContain(`the harness ${type} cannot use ${model.id}; it needs a model`);
    }
    expect(presetProblem(preset, { id: 'runbook', protocol: undefined, providerModel: '' })).toContain('runbook');
  },
);

test("a model that the harness's program would request under another name is refused", () => {
  const renamed = { id: 'google/gemini-3.5-flash', protocol: 'google', providerModel: 'gemini-3.5-flash' } as const;
  expect(presetProblem(presets.gemini, renamed)).toContain('Gemini CLI asks the provider for a newer model');
});

test('unknown members of `harness` are kept, and a command is accepted together with a preset', () => {
  const config = { harness: { type: 'claude', colour: 'red', command: ['my-claude'], env: { A: 'b' } } };
  expect(checkHarness(config)).toMatchObject({ ok: true, harness: 'claude' });
  expect(checkHarness({ harness: { type: 'command', command: ['cat'] } })).toEqual({ ok: true, harness: 'command' });
});

test('a harness that cannot ask can follow rules that the gateway and the proxy enforce, and no other rules', () => {
  const config = { harness: { type: 'command', command: ['cat'] }, approval_policy: 'ask' as const };
  const enforced = [{ push: '*' }, { host: 'example.com' }];
  expect(checkHarness({ ...config, approval_rules: enforced })).toMatchObject({ ok: true });
  const fault = (approval_rules: object[]) => checkHarness({ ...config, approval_rules });
  expect(fault([...enforced, { command: 'rm -rf' }])).toMatchObject({ fault: { path: 'config.approval_policy' } });
});

test('rules without a policy that uses them are refused', () => {
  for (const policy of [{}, { approval_policy: 'auto-approve' as const }])
    expect(checkHarness({ ...policy, approval_rules: [{ push: '*' }] })).toMatchObject({
      ok: false,
      fault: { path: 'config.approval_rules' },
    });
});
