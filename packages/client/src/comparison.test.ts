import type { RunItem } from '@runyard/contract/runs/runs';
import { expect, test } from 'vitest';
import { comparisonRequest, variantsOf } from './comparison.ts';

test('the variants are all combinations of models, harnesses, skills and prompts', () => {
  expect(variantsOf({})).toEqual([{}]);
  expect(variantsOf({ model: [], harness: ['claude', 'codex'], skill: ['a/b:c'], prompt: ['One.', 'Two.'] })).toEqual([
    { harness: 'claude', skill: 'a/b:c', prompt: 'One.' },
    { harness: 'claude', skill: 'a/b:c', prompt: 'Two.' },
    { harness: 'codex', skill: 'a/b:c', prompt: 'One.' },
    { harness: 'codex', skill: 'a/b:c', prompt: 'Two.' },
  ]);
});

test.each([
  [{}, {}],
  [{ prompt: 'Other.' }, { prompt: 'Other.' }],
  [
    { model: 'opus' },
    { config: { environment_id: 'E', skills: ['a/b:c'], harness: { type: 'claude' }, model_id: 'opus' } },
  ],
  [{ harness: 'codex' }, { config: { environment_id: 'E', skills: ['a/b:c'], harness: { type: 'codex' } } }],
  [
    { skill: 'a/b:d' },
    { config: { environment_id: 'E', skill_spec: 'a/b:d', harness: { type: 'claude', model_id: 'haiku' } } },
  ],
])('the variant %o changes only its own members of the configuration', (variant, expected) => {
  const agent_config = {
    environment_id: 'E',
    skill_spec: 'a/b:c',
    skills: ['a/b:c'],
    harness: { type: 'claude', model_id: 'haiku' },
  };
  expect(comparisonRequest({ agent_config } as unknown as RunItem, variant)).toEqual({ comparison: true, ...expected });
});
