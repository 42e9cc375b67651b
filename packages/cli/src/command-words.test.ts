import { expect, test } from 'vitest';
import { inCommandWords } from './command-words.ts';

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
])('says %j for the command line', (text, expected) => {
  expect(inCommandWords(text)).toBe(expected ?? text);
});
