import type { ContentBlock } from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import { plainPrompt } from './send-prompt.ts';

const textOf = (text: string): ContentBlock => ({ type: 'text', text });
const link: ContentBlock = { type: 'resource_link', uri: 'file:///workspace/a', name: 'a' };

test.each(['/compact', '/status gives 500', ' \n/init', '/', '$help'])(
  'adds text before %j, so that the program does not read it as a command',
  (text) => {
    expect(plainPrompt([link, textOf(text), textOf('/second')])).toEqual([
      link,
      textOf(`The user says:\n\n${text}`),
      textOf('/second'),
    ]);
  },
);

test.each(['Mend /status', '-v', '@file', '!ls', '#note', 'US$', ''])('leaves %j unchanged', (text) => {
  expect(plainPrompt([textOf(text), link])).toEqual([textOf(text), link]);
});

test('leaves a prompt without text unchanged', () => {
  expect(plainPrompt([link])).toEqual([link]);
});
