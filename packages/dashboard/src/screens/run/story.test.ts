import { expect, test } from 'vitest';
import { Story } from './story.ts';

const text = (id: string, words: string) => ({
  role: 'assistant' as const,
  timestamp: '2026-11-27T10:00:00Z',
  seq: 1,
  content: [{ type: 'text' as const, message_id: id, text: words }],
});
type Page = Parameters<Story['prepend']>[0];
const page = (...messages: unknown[]): Page =>
  ({ steps: [{ id: 's', messages }], continued: [], older: '1' }) as unknown as Page;
const many = (name: string, count: number) =>
  Array.from({ length: count }, (_, index) => text(`${name}${index}`, name));

test('an older page changes only the block at its end', () => {
  const story = new Story();
  story.prepend(page(...many('new', 120)));
  const before = story.view().blocks;
  story.prepend(page(...many('old', 130)));
  const { blocks, count } = story.view();
  expect(count).toBe(250);
  expect(blocks.filter((block) => before.includes(block))).toEqual(before.slice(1));
  const ids = blocks.flatMap(({ entries }) => entries.map(({ id }) => id));
  expect([ids[0], ids[129], ids[130], ids[249]]).toEqual(['text/old0', 'text/old129', 'text/new0', 'text/new119']);
});

test('a text and an action that two pages share become one entry each, at the earlier place', () => {
  const story = new Story();
  const result = { type: 'action_result', action_id: 'a', category: 'command', name: 'shell', state: 'completed' };
  story.prepend(
    page(text('m', ' world'), { ...text('', ''), content: [{ ...result, output: { text: 'done', exit_code: 0 } }] }),
  );
  const action = { type: 'action', id: 'a', category: 'command', name: 'shell', input: { command: 'ls' } };
  story.prepend(page(text('m', 'Hello'), { ...text('', ''), content: [action] }));
  expect(story.view().blocks.flatMap(({ entries }) => entries)).toMatchObject([
    { id: 'text/m', text: 'Hello world' },
    { id: 'a', input: { command: 'ls' }, state: 'completed', output: 'done' },
  ]);
});

test('an action whose question nobody has answered waits', () => {
  const story = new Story();
  const action = { type: 'action', id: 'a', category: 'command', name: 'shell', input: { command: 'ls' } };
  const data = { request: { request_id: 'q', title: 'ls', action: { id: 'a' } } };
  const asks = { type: 'event', name: 'permission', data };
  story.prepend(page({ ...text('', ''), content: [action] }, { ...text('', ''), content: [asks] }));
  expect(story.view().blocks.flatMap(({ entries }) => entries)).toMatchObject([
    { id: 'a', state: 'waiting' },
    { id: 'request/q', title: 'ls' },
  ]);
});
