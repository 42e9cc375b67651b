import type { RunItem } from '@runyard/contract/runs/runs';
import { expect, test } from 'vitest';
import { asCommand, type Draft, draftOfRun, emptyDraft, requestOf, rerunOf } from './request.ts';

const commandOf = (changes: Partial<Draft>): string => {
  const draft = { ...emptyDraft, prompt: "Say 'hello'", ...changes };
  return asCommand(draft, { path: '/agent/runs', body: requestOf(draft) }, false);
};
const run = {
  prompt: 'Do it',
  title: 'Do it',
  agent_config: {
    name: 'nightly',
    model_id: 'runbook',
    environment_id: 'ENV',
    approval_policy: 'auto-approve',
    harness: { type: 'acp', command: ['agent'] },
    max_cost_usd: 5,
    skill_spec: 'acme/web:fix',
    skills: ['acme/web:fix', 'acme/web:test'],
  },
} as unknown as RunItem;

test('a request is the command run with its options', () => {
  expect(commandOf({ mode: 'plan' })).toContain("run --mode 'plan' ");
  expect(commandOf({ model: 'runbook', cost: '2', isFresh: true })).toBe(
    String.raw`bin/runyard run --model 'runbook' --max-cost '2' --refresh 'Say '\''hello'\'''`,
  );
});

test.each([{ identity: 'AGENT' }, { prompt: '--json' }])(
  'a request with %o is the command api, because the command run cannot say it',
  (changes) => {
    const command = commandOf(changes);
    expect(command).toMatch(/^bin\/runyard api POST \/agent\/runs --data '\{/);
    expect(command).toContain(Object.values(changes)[0]);
  },
);

test('a rerun without changes sends nothing', () => {
  expect(rerunOf(draftOfRun(run), run)).toEqual({});
});

test('a rerun with another limit keeps the members of the configuration that the form does not show', () => {
  expect(rerunOf({ ...draftOfRun(run), cost: '', minutes: '30', isFresh: true }, run)).toEqual({
    config: {
      name: 'nightly',
      model_id: 'runbook',
      environment_id: 'ENV',
      harness: { type: 'acp', command: ['agent'] },
      refresh_environment: true,
      max_duration_minutes: 30,
      skills: ['acme/web:fix', 'acme/web:test'],
    },
  });
});

test('a rerun with another prompt sends only the prompt', () => {
  expect(rerunOf({ ...draftOfRun(run), prompt: 'Do it again' }, run)).toEqual({ prompt: 'Do it again' });
});
