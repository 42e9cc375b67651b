import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import { createRedactor, redacted } from '@runyard/system/redaction/redactor';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type HeldTexts, redactEvents } from './redact-events.ts';

const secret = 'ryr_abcabcabd-"secret"';
const redactor = createRedactor([secret]);
const at = '2026-01-02T03:04:05.000Z';
const end: AgentEvent = { seq: 1, occurred_at: at, type: 'turn_finished', step_id: 's' };

/**
 * Reports these lines, each in a separate batch, and then the end of the turn. Returns the transcript that is stored.
 */
function transcriptOf(lines: readonly string[], by = redactor): string[] {
  const held: HeldTexts = {};
  const events = [...lines.map((line): AgentEvent => ({ seq: 1, occurred_at: at, type: 'transcript', line })), end];
  return events
    .flatMap((event) => redactEvents([event], by, held))
    .flatMap((event) => (event.type === 'transcript' ? [event.line] : []));
}

const update = (update: object, sessionId = 's1') =>
  JSON.stringify({ jsonrpc: '2.0', method: 'session/update', params: { sessionId, update } });
const chunk = (text: string, more: object = {}) =>
  update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text }, ...more });
const output = (data: string, more: object = {}) =>
  update({
    sessionUpdate: 'tool_call_update',
    toolCallId: 't1',
    _meta: { terminal_output: { terminal_id: 't1', data } },
    ...more,
  });

interface Shape {
  readonly line: (text: string) => string;
  readonly text: (line: string) => string;
}
const updateOf = (line: string) => JSON.parse(line).params.update;
const shapes: Record<string, Shape> = {
  'text of the agent': { line: chunk, text: (line) => updateOf(line).content.text },
  'a thought': {
    line: (text) => update({ sessionUpdate: 'agent_thought_chunk', messageId: 'm', content: { type: 'text', text } }),
    text: (line) => updateOf(line).content.text,
  },
  'the output of a command': { line: output, text: (line) => updateOf(line)._meta.terminal_output.data },
  'the output of a command as codex sends it': {
    line: (data) =>
      update({ sessionUpdate: 'tool_call_update', toolCallId: 't1', _meta: { terminal_output_delta: { data } } }),
    text: (line) => updateOf(line)._meta.terminal_output_delta.data,
  },
  'lines that are not messages': { line: (raw) => JSON.stringify({ raw }), text: (line) => JSON.parse(line).raw },
  'lines that are not JSON': { line: (text) => text, text: (line) => line },
};

it.each(Object.entries(shapes))('a secret is removed wherever two lines cut it: %s', (_, { line, text }) => {
  for (let cut = 0; cut <= secret.length; cut += 1) {
    const stored = transcriptOf([line(`It is ${secret.slice(0, cut)}`), line(`${secret.slice(cut)}. So.`)]);
    expect(stored.map(text).join(''), `cut at ${cut}`).toBe(`It is ${redacted}. So.`);
  }
});

it.each(Object.entries(shapes))(
  'removes a secret of which each character is on its own line: %s',
  (_, { line, text }) => {
    const stored = transcriptOf([...`It is ${secret}. So.`].map(line));
    expect(stored.map(text).join('')).toBe(`It is ${redacted}. So.`);
  },
);

it.each(Object.entries(shapes))(
  'stores held text at the end of a turn if no secret followed: %s',
  (_, { line, text }) => {
    const stored = transcriptOf([line('It is ryr_'), line('abc')]);
    expect(stored.map(text).join('')).toBe('It is ryr_abc');
  },
);

it('a secret of several lines is removed from lines that are not messages', () => {
  const key = '-----BEGIN-----\nabcdef\nghijkl\n-----END-----';
  const lines = `Key: ${key}!`.split('\n').map((raw) => JSON.stringify({ raw }));
  const stored = transcriptOf(lines, createRedactor([key]));
  expect(stored.map((line) => JSON.parse(line).raw).join('')).toBe(`Key: ${redacted}!`);
});

it('lines without a secret do not change in any byte', () => {
  const lines = [
    '{"jsonrpc": "2.0", "id": 1e2, "result": {"a": 1.0}}',
    chunk('Hello ', { extra: [1.5] }),
    chunk('world!'),
    output('done\n'),
    update({ sessionUpdate: 'tool_call_update', toolCallId: 't1', status: 'completed' }),
    '[]',
    'null',
  ];
  expect(transcriptOf(lines)).toEqual(lines);
});

it('the held text of a message is stored before the line that ends the message, with the ids of the message', () => {
  const call = update({ sessionUpdate: 'tool_call', toolCallId: 't1', title: 'x' });
  const other = update({ sessionUpdate: 'usage_update', used: 1 });
  const stored = transcriptOf([chunk('We wai r', { messageId: 'm1' }), other, call, chunk('!', { messageId: 'm2' })]);
  expect(stored.slice(0, 2)).toEqual([chunk('We wai ', { messageId: 'm1' }), other]);
  expect(updateOf(stored[2] ?? '')).toEqual({
    sessionUpdate: 'agent_message_chunk',
    messageId: 'm1',
    content: { type: 'text', text: 'r' },
  });
  expect(stored[3]).toBe(call);
  expect(stored.slice(4)).toEqual([chunk('!', { messageId: 'm2' })]);
});

it('the held output of a command is stored at the end of this command, and not of another command', () => {
  const of = (toolCallId: string, data: string, more: object = {}) =>
    update({ sessionUpdate: 'tool_call_update', toolCallId, _meta: { terminal_output: { data } }, ...more });
  const stored = transcriptOf([
    of('t1', 'ryr_'),
    of('t2', 'ryr_'),
    of('t1', 'ab', { status: 'completed' }),
    of('t2', `${secret.slice(4)}!`),
  ]);
  expect(stored).toEqual([
    of('t1', ''),
    of('t2', ''),
    of('t1', 'ryr_ab', { status: 'completed' }),
    of('t2', `${redacted}!`),
  ]);
});

it('text is held back for at most about 200 streams at a time', () => {
  const held: HeldTexts = {};
  const events = Array.from(
    { length: 1_000 },
    (_, index): AgentEvent => ({
      ...{ seq: 1, occurred_at: at, type: 'text', step_id: 's', role: 'assistant' },
      ...{ message_id: `m${index}`, text: 'It is ryr_' },
    }),
  );
  const stored = events.flatMap((event) => redactEvents([event], redactor, held));
  expect(Object.keys(held).length).toBeLessThanOrEqual(201);
  stored.push(...redactEvents([end], redactor, held));
  const said = stored.flatMap((event) => (event.type === 'text' && event.message_id === 'm7' ? [event.text] : []));
  expect(said.join('')).toBe('It is ryr_');
});

it.each(Object.entries(shapes))(
  'stores a short end before a line break at once, and still removes a secret that continues it: %s',
  (_, { line, text }) => {
    const textOf = (pieces: readonly string[]) => {
      const held: HeldTexts = {};
      return pieces
        .flatMap((piece) =>
          redactEvents([{ seq: 1, occurred_at: at, type: 'transcript', line: line(piece) }], redactor, held),
        )
        .map((event) => (event.type === 'transcript' ? text(event.line) : ''));
    };
    expect(textOf(['counter\n', '\n', 'next'])).toEqual(['counter\n', '\n', 'next']);
    expect(textOf(['It is r\n', 'y', secret.slice(2), '.'])).toEqual(['It is r\n', '', redacted, '.']);
    expect(textOf(['It is ryr\n', '_abc', 'd'])).toEqual(['It is ryr\n', '', '_abcd']);
    expect(textOf(['It is ryr_\n', 'x'])).toEqual(['It is ', 'ryr_\nx']);
  },
);

it('each character is stored exactly once, even if a stream is cut at any place', () => {
  const pieces = fc.array(fc.stringMatching(/^[ry_abcd\n]{0,6}$/), { maxLength: 12 });
  fc.assert(
    fc.property(pieces, (texts) => {
      const whole = texts.join('');
      fc.pre(!whole.replaceAll('\n', '').includes(secret));
      expect(
        transcriptOf(texts.map((data) => output(data)))
          .map((line) => updateOf(line)._meta.terminal_output.data)
          .join(''),
      ).toBe(whole);
    }),
  );
});

it('if line breaks cut a secret, at most three of its characters are stored', () => {
  const cuts = fc.uniqueArray(fc.nat({ max: secret.length }), { maxLength: 8 });
  fc.assert(
    fc.property(cuts, (at) => {
      const lines = [0, ...at.toSorted((a, b) => a - b), secret.length].map((from, index, all) =>
        secret.slice(from, all[index + 1] ?? from),
      );
      const stored = transcriptOf(`It is ${lines.join('\n')}. So.`.split(/(?<=\n)/).map((data) => output(data)));
      const text = stored.map((line) => updateOf(line)._meta.terminal_output.data).join('');
      expect(text.replaceAll('\n', '')).toMatch(new RegExp(`^It is r?y?r?${redacted}\\. So\\.$`));
    }),
  );
});

const say = (message_id: string, text: string): AgentEvent => ({
  ...{ seq: 1, occurred_at: at, type: 'text', step_id: 's', role: 'assistant', message_id, text },
});
const act: AgentEvent = {
  ...{
    seq: 1,
    occurred_at: at,
    type: 'action',
    step_id: 's',
    action_id: 'a',
    category: 'command',
    name: 'x',
    input: {},
  },
};
const asks: AgentEvent = {
  ...{ seq: 1, occurred_at: at, type: 'blocked', step_id: 's' },
  request: { request_id: 'q', kind: 'question', title: 'Which?' },
};

/** Returns what a live view shows of these events: the texts by their message, and the types of the other events. */
function shownOf(events: readonly AgentEvent[], by = redactor): string[] {
  const held: HeldTexts = {};
  return events
    .flatMap((event) => redactEvents([event], by, held))
    .map((event) => (event.type === 'text' ? `${event.message_id}: ${event.text}` : event.type));
}

const ghp = createRedactor(['ghp_0123456789abcdefghij']);

it.each([
  ['an action', act, ['action']],
  ['a question', asks, ['blocked']],
  ['another message', say('m2', 'Done.'), ['m2: Done.']],
])('the held end of a message is stored before %s', (_, next, shown) => {
  expect(shownOf([say('m1', 'Now I am testing'), next], ghp)).toEqual(['m1: Now I am testin', 'm1: g', ...shown]);
});

it('another piece of the same message does not end the message', () => {
  expect(shownOf([say('m1', 'It is ghp_'), say('m1', '0123456789abcdefghij.')], ghp)).toEqual([
    'm1: It is ',
    `m1: ${redacted}.`,
  ]);
});

it('a pause stores at most three letters that may begin a secret, and the rest of the secret is still removed', () => {
  expect(shownOf([say('m1', 'testing'), say('m1', ''), say('m1', ''), say('m1', ' it')], ghp)).toEqual([
    'm1: testin',
    'm1: g',
    'm1:  it',
  ]);
  expect(shownOf([say('m1', 'It is gh'), say('m1', ''), say('m1', 'p_0123456789abcdefghij!')], ghp)).toEqual([
    'm1: It is ',
    'm1: gh',
    `m1: ${redacted}!`,
  ]);
  expect(shownOf([say('m1', 'It is ghp_'), say('m1', ''), say('m1', '0123456789abcdefghij!')], ghp)).toEqual([
    'm1: It is ',
    `m1: ${redacted}!`,
  ]);
});
