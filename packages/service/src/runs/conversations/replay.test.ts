import { maxOutputBytes } from '@runyard/contract/limits';
import type { AgentEvent, AgentEventBody } from '@runyard/contract/runs/agent-events';
import { ConversationResponse } from '@runyard/contract/runs/conversations';
import { describe, expect, it } from 'vitest';
import { startReplay } from './replay.ts';

const events = (...bodies: AgentEventBody[]): AgentEvent[] =>
  bodies.map(
    (body, index) => ({ ...body, seq: index + 1, occurred_at: `2026-11-21T10:00:0${index % 10}Z` }) as AgentEvent,
  );

const turn = { type: 'turn_started', step_id: 's', prompt: 'Do it' } as const;
const action = { type: 'action', step_id: 's', action_id: 'a', category: 'command', name: 'shell', input: {} } as const;
const output = (text: string) => ({ type: 'action_output', action_id: 'a', text }) as const;

const replay = (bodies: AgentEventBody[], hasEnded = false) => {
  const replayed = startReplay('c');
  for (const event of events(...bodies)) replayed.apply(event);
  if (hasEnded) replayed.endRun();
  return ConversationResponse.parse(structuredClone(replayed.read()));
};
const resultOf = (conversation: ConversationResponse) => {
  const blocks = conversation.steps.flatMap((step) => step.messages.flatMap((message) => message.content));
  const found = blocks.find((block) => block.type === 'action_result');
  if (found?.type !== 'action_result') throw new Error('no result');
  return found;
};

describe('a replay', () => {
  it('shows one step for each prompt', () => {
    const conversation = replay([
      turn,
      { type: 'turn_finished', step_id: 's' },
      { ...turn, step_id: 't', prompt: 'More' },
    ]);
    expect(conversation.steps.map((step) => step.messages[0]?.content[0])).toMatchObject([
      { text: 'Do it' },
      { text: 'More' },
    ]);
    expect(conversation.steps[0]?.completed_at).toBe('2026-11-21T10:00:01Z');
    expect(conversation.steps[1]?.completed_at).toBeUndefined();
  });

  it('joins the pieces of each message, even if the pieces of two messages alternate', () => {
    const text = (message_id: string, piece: string) =>
      ({ type: 'text', step_id: 's', message_id, role: 'assistant', text: piece }) as const;
    const conversation = replay([turn, text('m', 'a'), text('n', 'x'), text('m', 'b'), text('n', 'y')]);
    expect(conversation.steps[0]?.messages.slice(1).map((message) => message.content)).toMatchObject([
      [{ text: 'ab' }],
      [{ text: 'xy' }],
    ]);
  });

  it('shows a notice as an event', () => {
    const conversation = replay([turn, { type: 'notice', step_id: 's', name: 'plan', data: { steps: 2 } }]);
    expect(conversation.steps[0]?.messages[1]?.content).toEqual([{ type: 'event', name: 'plan', data: { steps: 2 } }]);
  });

  it('shows an open action as running, with its output so far', () => {
    expect(resultOf(replay([turn, action, output('one'), output('two')]))).toMatchObject({
      state: 'running',
      output: { text: 'onetwo' },
    });
  });

  it("shows the output from an action's result, or, if the result has no output, the pieces of output that arrived before", () => {
    const result = { type: 'action_result', action_id: 'a', state: 'completed' } as const;
    expect(resultOf(replay([turn, action, output('shown'), result]))).toMatchObject({
      state: 'completed',
      output: { text: 'shown' },
    });
    expect(resultOf(replay([turn, action, output('shown'), { ...result, output: 'whole' }])).output).toEqual({
      text: 'whole',
    });
  });

  it('shows an action as failed if it was still open at the end of the run', () => {
    const result = resultOf(replay([turn, action, output('half')], true));
    expect(result).toMatchObject({ state: 'failed', output: { text: expect.stringMatching(/^half\ninterrupted/) } });
  });

  it('shows the exit code and the duration of a command in its output', () => {
    const end = { type: 'action_result', action_id: 'a', state: 'failed', exit_code: 0, duration_ms: 1.5 } as const;
    expect(resultOf(replay([turn, action, end])).output).toEqual({ text: '', exit_code: 0, duration_ms: 1.5 });
  });

  it.each([
    [{ n: 1 }, '{"n":1}'],
    [[1], '[1]'],
    [null, 'null'],
    [7, '7'],
  ])('shows the output %j as text', (value, text) => {
    const end = { type: 'action_result', action_id: 'a', state: 'completed', output: value } as const;
    expect(resultOf(replay([turn, action, output('shown'), end])).output).toEqual({ text });
  });

  it.each([
    [{ a: 1 }, { a: 1 }],
    ['ls', { text: 'ls' }],
    [['a'], { text: '["a"]' }],
    [7, { text: '7' }],
    [null, {}],
    [undefined, {}],
  ])('shows the input %j and the data of a notice as an object', (value, shown) => {
    const { steps } = replay([
      turn,
      { ...action, input: value },
      { type: 'notice', step_id: 's', name: 'x', data: value },
    ]);
    const blocks = steps[0]?.messages.flatMap(({ content }) => content) ?? [];
    expect(blocks).toMatchObject([{ type: 'text' }, { input: shown }, { type: 'action_result' }, { data: shown }]);
    expect(blocks[1]).toHaveProperty('input', shown);
  });

  it('ignores the end of an action that never began, and the second start of an action', () => {
    const conversation = replay([
      turn,
      { type: 'action_result', action_id: 'zzz', state: 'completed' },
      action,
      action,
    ]);
    expect(conversation.steps[0]?.messages).toHaveLength(3);
  });

  it('shows an action that is reported again only once, with the name and the input of the last report', () => {
    const again = { ...action, category: 'files', name: 'read', input: { path: 'a.txt' } } as const;
    const conversation = replay([turn, action, output('one'), again, output('two')]);
    expect(conversation.steps[0]?.messages).toHaveLength(3);
    expect(conversation.steps[0]?.messages[1]?.content).toEqual([
      { type: 'action', id: 'a', category: 'files', name: 'read', input: { path: 'a.txt' } },
    ]);
    expect(resultOf(conversation)).toMatchObject({ category: 'files', name: 'read', output: { text: 'onetwo' } });
  });

  it('makes a step for events of a step that never began', () => {
    expect(replay([action]).steps.map((step) => step.id)).toEqual(['s']);
  });

  it('shortens an output over 64 KB to its beginning, its end and its size, and cuts no character', () => {
    const bodies: AgentEventBody[] = [turn, action];
    for (let i = 0; i < 40_000; i += 1) bodies.push(output('aé€😀'));
    const { text } = resultOf(replay(bodies)).output;
    expect(Buffer.byteLength(text)).toBeLessThan(maxOutputBytes + 100);
    expect(text).toMatch(/^aé€😀/);
    expect(text).toMatch(/aé€😀$/);
    expect(text).not.toContain('\ufffd');
    expect(text).toContain('…\n… 327 KB left out …\n…');
  });

  it('cuts a long output only between lines, and names the size of the part that is left out', () => {
    const bodies: AgentEventBody[] = [turn, action];
    for (let i = 1; i <= 50_000; i += 1) bodies.push(output(`${i}\n`));
    const lines = resultOf(replay(bodies)).output.text.trimEnd().split('\n');
    const mark = lines.findIndex((line) => line.startsWith('…'));
    expect(lines.slice(0, mark)).toEqual(lines.slice(0, mark).map((_, index) => String(index + 1)));
    expect(lines.slice(mark + 1)).toEqual(
      lines.slice(mark + 1).map((_, index, all) => String(50_001 - all.length + index)),
    );
    expect(lines[mark]).toContain(`… ${(50_000 - lines.length + 1).toLocaleString('en-US')} lines (`);
  });

  it('shortens long results and inputs that are not text', () => {
    const big = { lines: Array.from({ length: 20_000 }, (_, i) => `line ${i}`) };
    const result = resultOf(
      replay([turn, action, { type: 'action_result', action_id: 'a', state: 'completed', output: big }]),
    );
    expect(result.output.text).toMatch(/^\{"lines":\["line 0",.* left out .*\]\}$/s);
    expect(Buffer.byteLength(result.output.text)).toBeLessThan(maxOutputBytes + 100);
    const blocks = replay([turn, { ...action, input: big }]).steps[0]?.messages[1]?.content;
    expect(blocks?.[0]).toMatchObject({ input: { size_bytes: JSON.stringify(big).length } });
  });
});
