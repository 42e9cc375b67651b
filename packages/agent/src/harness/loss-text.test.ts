import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { expect, test } from 'vitest';
import { promptContent } from './prompt.ts';

const task: AgentTask = {
  run_id: 'r',
  execution_id: 'e',
  execution_number: 2,
  conversation_id: 'c',
  title: 'T',
  prompt: 'Do it.',
  conversation: { kind: 'text', text: 'Said before.' },
  loss: { message: 'Burnt.', kept_at: '2026-01-02T03:04:05.000Z', record: 'Done since.', done_blocks: 0 },
  agent_config: {},
  attachments: [{ path: '/a', file_name: 'a', mime_type: 'text/plain', size_bytes: 1, earlier: true }],
  harness: { type: 'claude' },
  repositories: [],
};
const promptOf = (given: AgentTask, how: { restored: boolean; loaded: boolean }) =>
  promptContent(given, [], how)
    .map((block) => (block.type === 'text' ? block.text : ''))
    .join('|');

test('after a lost machine, a harness that loaded its session gets only the part of the conversation after that session', () => {
  const text = promptOf(task, { restored: true, loaded: true });
  for (const part of ['as they were kept at 2026-01-02T03:04:05.000Z', 'Done since.', 'are in attachments/', 'Do it.'])
    expect(text).toContain(part);
  expect(text).not.toContain('Said before.');
});

test('after a lost machine, a harness that could not load its session gets the whole conversation', () => {
  const text = promptOf(task, { restored: true, loaded: false });
  expect(text.indexOf('Said before.')).toBeLessThan(text.indexOf('Done since.'));
  expect(text).not.toContain('The user now says');
});

test('after a lost machine, a program that must get the prompt unchanged gets no additional text', () => {
  expect(promptOf({ ...task, harness: { type: 'command' } }, { restored: true, loaded: false })).toBe('Do it.');
});

test('the prompt of a run that lost no machine does not mention a loss', () => {
  const { loss: _, ...ordinary } = task;
  expect(promptOf(ordinary, { restored: true, loaded: false })).not.toContain('lost');
});
