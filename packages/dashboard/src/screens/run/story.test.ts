import { expect, test, vi } from 'vitest';
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

test('adding an older page changes only the block at the border to the entries that were loaded before', () => {
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

test('a text or an action that is split over two pages becomes one entry, at the place of the part on the older page', () => {
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

const action = { type: 'action', id: 'a', category: 'command', name: 'shell', input: { command: 'ls' } };
const running = { type: 'action_result', action_id: 'a', category: 'command', name: 'shell', state: 'running' };
const begun = [
  { ...text('', ''), content: [action] },
  { ...text('', ''), content: [{ ...running, output: { text: '' } }] },
];
const asks = (answer = {}) => ({
  ...text('', ''),
  content: [
    {
      type: 'event',
      name: 'permission',
      data: { request: { request_id: 'q', title: 'ls', action_id: 'a' }, ...answer },
    },
  ],
});
const stateIn = (story: Story) =>
  story
    .view()
    .blocks.flatMap(({ entries }) => entries.flatMap((entry) => (entry.kind === 'action' ? entry.state : [])));

test('an action is shown as waiting while its question has no answer', () => {
  const story = new Story();
  story.prepend(page(...begun, asks()));
  expect(story.view().blocks.flatMap(({ entries }) => entries)).toMatchObject([
    { id: 'a', state: 'waiting' },
    { id: 'request/q', title: 'ls' },
  ]);
});

test.each([
  ['waits until its question on a newer page is answered', [asks()], 'waiting'],
  ['runs after a newer page approves it', [asks({ decision: 'approve', by: 'person' })], 'running'],
  [
    'runs after its question on a page between is approved',
    [asks({ decision: 'approve', by: 'person' }), asks()],
    'running',
  ],
  ['is denied by a newer page', [asks({ decision: 'deny', by: 'person' })], 'denied'],
])('an action on an older page %s', (_, newer, state) => {
  const story = new Story();
  for (const message of newer) story.prepend(page(message));
  story.prepend(page(...begun));
  expect(stateIn(story)).toEqual([state]);
});

test('an action on an older page is shown as waiting for a live question, and gets the result that arrives later', () => {
  const event = { run_id: 'r', step_id: 's', seq: 9, occurred_at: '2026-11-27T10:00:00Z' };
  const asked = {
    kind: 'permission',
    request_id: 'q',
    title: 'ls',
    action: { id: 'a', category: 'command', name: 'shell' },
  };
  for (const [more, state] of [
    [[], 'waiting'],
    [[{ type: 'action_result', action_id: 'a', state: 'completed' }], 'completed'],
  ] as const) {
    const story = new Story();
    for (const one of [{ type: 'blocked', request: asked }, ...more])
      story.add({ ...event, ...one } as unknown as Parameters<Story['add']>[0]);
    story.prepend(page(...begun));
    expect(stateIn(story)).toEqual([state]);
  }
});

test('live events are shown with the next frame of the browser, and after many events the next update waits for a pause', () => {
  vi.useFakeTimers();
  try {
    const story = new Story();
    const add = (count: number) => {
      for (let n = 0; n < count; n += 1)
        story.add({ type: 'notice', step_id: 's', seq: added++, occurred_at: '', name: 'n', data: {} });
    };
    let added = 0;
    add(500);
    vi.advanceTimersByTime(16);
    expect(story.view().count).toBe(500);
    add(1);
    vi.advanceTimersByTime(99);
    expect(story.view().count).toBe(500);
    vi.advanceTimersByTime(17);
    expect(story.view().count).toBe(501);
    vi.advanceTimersByTime(16);
    add(1);
    vi.advanceTimersByTime(16);
    expect(story.view().count).toBe(502);
  } finally {
    vi.useRealTimers();
  }
});

test('a step that waits for a person does not fail when its sandbox rests, and is interrupted after a late approval', () => {
  const story = new Story();
  const stopped = { ...running, state: 'failed', output: { text: '[interrupted]\n', duration_ms: 600_000 } };
  const after = (answer = {}) => page(...begun, asks(answer), { ...text('', ''), content: [stopped] });
  story.prepend(after());
  const entryIn = (of: Story) => of.view().blocks.flatMap(({ entries }) => entries)[0];
  expect(entryIn(story)).toMatchObject({ state: 'waiting' });
  expect(entryIn(story)).not.toHaveProperty('durationMs');
  const decided = new Story();
  decided.prepend(after({ decision: 'approve', by: 'person' }));
  expect(stateIn(decided)).toEqual(['interrupted']);
});

test('a question to a person waits, and does not run', () => {
  const story = new Story();
  story.prepend(page({ ...text('', ''), content: [{ ...action, name: 'ask_user' }] }, begun[1]));
  expect(stateIn(story)).toEqual(['waiting']);
});

test('only entries after the first page count as new', () => {
  const story = new Story();
  story.prepend(page(...many('new', 120)));
  expect(story.view().added).toBe(0);
  story.add({
    ...many('x', 1)[0],
    type: 'text',
    step_id: 's',
    message_id: 'later',
    occurred_at: 'x',
    text: 'hi',
  } as never);
  return vi.waitFor(() => expect(story.view().added).toBe(1));
});
