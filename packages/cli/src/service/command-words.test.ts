import { expect, test } from 'vitest';
import { inCommandWords, inOptionWords } from './command-words.ts';

test.each([
  [
    'unknown model "a/b"; GET /agent/models lists the known ones',
    'unknown model "a/b"; bin/runyard models lists the known ones',
  ],
  [
    'there is no secret A. Set it with PUT /secrets/A; GET /secrets lists those that you may use',
    'there is no secret A. Set it with bin/runyard secrets set A; bin/runyard secrets lists those that you may use',
  ],
  [
    'the team has no secret A. Set it with PUT /secrets/A and the scope team',
    'the team has no secret A. Set it with bin/runyard secrets set A --scope team',
  ],
  ['List the skills with GET /agent.', 'List the skills with bin/runyard agents.'],
  [
    'There is no such environment, or it belongs to another team.',
    'There is no such environment, or it belongs to another team. See: bin/runyard environments',
  ],
  [
    'There is no such webhook, or it belongs to another team.',
    'There is no such webhook, or it belongs to another team. See: bin/runyard webhooks',
  ],
  ['There is no such definition, or it belongs to another team.', undefined],
  ['prompt: is required', undefined],
])('inCommandWords replaces the API requests in %j by commands', (text, expected) => {
  expect(inCommandWords(text)).toBe(expected ?? text);
});

test.each([
  ['invalid_request: config.model_id: unknown model "nope"', 'invalid_request: --model: unknown model "nope"'],
  ['config.secrets[1].name: there is no secret A', '--secret: there is no secret A'],
  ['config.harness.type: must be one of oz, acp', '--harness: must be one of oz, acp'],
  ['config.harness.command[2]: must not be empty', '--harness-command: must not be empty'],
  [
    '2 faults\n  title: is too long\n  metadata.a: is too long',
    '2 faults\n  --title: is too long\n  --metadata: is too long',
  ],
  ['the model says: config.model_id is wrong', undefined],
  ['config.other: is not known', undefined],
])('inOptionWords replaces the members in %j by options of run', (text, expected) => {
  expect(inOptionWords(text)).toBe(expected ?? text);
});
