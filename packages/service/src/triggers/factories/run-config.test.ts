import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import { describe, expect, test } from 'vitest';
import { configOfFactoryRun } from './run-config.ts';

const agent = { prompt: '', config: {} };

describe('configOfFactoryRun', () => {
  test.each([
    ['is empty if neither the defaults nor the agent set a member', { defaults: {}, agent }, {}],
    ['contains the members of the defaults', { defaults: { model_id: 'a' }, agent }, { model_id: 'a' }],
    [
      'prefers the agent to the defaults, and the overrides to both',
      {
        defaults: { model_id: 'a', environment_id: 'e'.repeat(22), idle_timeout_minutes: 1 },
        agent: { prompt: '', config: { model_id: 'b', idle_timeout_minutes: 2 } },
        overrides: { idle_timeout_minutes: 3 },
      },
      { model_id: 'b', environment_id: 'e'.repeat(22), idle_timeout_minutes: 3 },
    ],
    [
      'puts the prompt of the agent behind the base prompt of the defaults',
      { defaults: { base_prompt: 'Be kind.\n' }, agent: { prompt: ' Review. ', config: {} } },
      { base_prompt: 'Be kind.\n\nReview.' },
    ],
    [
      'lets an automation replace the base prompt',
      { defaults: {}, agent: { prompt: 'Review.', config: {} }, overrides: { base_prompt: 'Merge.' } },
      { base_prompt: 'Merge.' },
    ],
    [
      'replaces members of the same harness one by one',
      {
        defaults: { harness: { type: 'codex', model_id: 'a', reasoning_level: 'low' } },
        agent: { prompt: '', config: { harness: { reasoning_level: 'high' } } },
      },
      { harness: { type: 'codex', model_id: 'a', reasoning_level: 'high' } },
    ],
    [
      'contains no member of the default harness if the agent sets another type of harness',
      {
        defaults: { harness: { type: 'codex', reasoning_level: 'low' } },
        agent: { prompt: '', config: { harness: { type: 'claude' } } },
      },
      { harness: { type: 'claude' } },
    ],
    [
      'contains no reasoning level if the agent replaces the inherited one by an empty text',
      {
        defaults: { harness: { type: 'codex', reasoning_level: 'low' } },
        agent: { prompt: '', config: { harness: { reasoning_level: '' } } },
      },
      { harness: { type: 'codex' } },
    ],
    [
      'lets the model in the harness of an automation replace an inherited model',
      { defaults: { model_id: 'a' }, agent, overrides: { harness: { type: 'codex', model_id: 'b' } } },
      { harness: { type: 'codex', model_id: 'b' } },
    ],
    [
      'lets `skill_spec` replace inherited `skills`, and `skills` replace an inherited `skill_spec`',
      {
        defaults: { skills: ['o/r:a', 'o/r:b'] },
        agent: { prompt: '', config: { skill_spec: 'o/r:c' } },
        overrides: { skills: ['o/r:d'] },
      },
      { skills: ['o/r:d'] },
    ],
    [
      'lets an empty worker_host replace the inherited one',
      { defaults: { worker_host: 'mac' }, agent, overrides: { worker_host: '' } },
      { worker_host: '' },
    ],
  ])('%s', (_name, parts, expected) => {
    expect(configOfFactoryRun(parts)).toEqual(expected);
  });
});

test('a run keeps the skills of the definition of its factory even if its automation sets `skills` or `skill_spec`', () => {
  const defined = '@factory/abcdefghij0123456789AB:skills/deploy/SKILL.md';
  const agent = { prompt: '', config: { skills: ['acme/site:greet', defined] } };
  const skillsWith = (overrides: AmbientAgentConfig) => configOfFactoryRun({ defaults: {}, agent, overrides });
  expect(skillsWith({}).skills).toEqual(['acme/site:greet', defined]);
  expect(skillsWith({ skills: ['acme/site:review'] }).skills).toEqual(['acme/site:review', defined]);
  expect(skillsWith({ skills: [] }).skills).toEqual([defined]);
  const one = skillsWith({ skill_spec: 'acme/site:review' });
  expect(one.skills).toEqual(['acme/site:review', defined]);
  expect(one).not.toHaveProperty('skill_spec');
});
