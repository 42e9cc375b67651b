/** Examples of the operations on providers of models. */
import { type Example, exampleCreator, exampleTimes } from '../wire/example.ts';

const stored = {
  provider: 'anthropic',
  source: 'stored',
  setting: 'RUNYARD_ANTHROPIC_API_KEY',
  endpoint: 'api.anthropic.com:443',
  last_four: 'x7Qa',
  set_by: exampleCreator,
  set_at: exampleTimes.created,
};

export const modelProviderExamples = {
  listModelProviders: {
    answer: { providers: [stored, { provider: 'openai', source: 'none', setting: 'RUNYARD_OPENAI_API_KEY' }] },
  },
  putModelProvider: { body: { key: 'example-key-of-the-provider-x7Qa' }, answer: stored },
  deleteModelProvider: { answer: { success: true } },
  testModelProvider: { answer: { works: true, message: 'Anthropic accepts the key.' } },
} as const satisfies Record<string, Example>;
