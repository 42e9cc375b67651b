import { randomUUIDv7 } from 'node:crypto';
import type { AgentEvent, AgentEventBody } from '@runyard/contract/runs/agent-events';
import type { ConversationResponse, Step } from '@runyard/contract/runs/conversations';
import { describe, expect, it } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { createTestDatabase } from '../../../test/database.ts';
import { readConversation } from '../../../test/read.ts';
import { conversationText } from './as-text.ts';
import { readParts } from './read.ts';
import { startReplay } from './replay.ts';

const database = closeAtEnd(await createTestDatabase());
// The functions under test read only the events, so the test stores no runs.
await database.db.query('ALTER TABLE conversation_events DROP CONSTRAINT IF EXISTS conversation_events_run_id_fkey');

type Body = AgentEventBody & { readonly execution?: number };

/** Stores the events of a run with two executions. `execution` is the index of the event's execution: 0 or 1. */
async function store(
  bodies: readonly Body[],
): Promise<{ runId: string; events: (AgentEvent & { execution: number })[] }> {
  const runId = randomUUIDv7();
  const executions = [randomUUIDv7(), randomUUIDv7()];
  const events = bodies.map(({ execution = 0, ...body }, index) => {
    const occurred_at = new Date(1_800_000_000_000 + index * 1000).toISOString();
    return { ...body, seq: index + 1, occurred_at, execution } as AgentEvent & { execution: number };
  });
  for (const { execution, ...event } of events)
    await database.db.query(
      'INSERT INTO conversation_events (run_id, seq, execution_id, event) VALUES ($1, $2, $3, $4)',
      [runId, event.seq, executions[execution], JSON.stringify(event)],
    );
  return { runId, events };
}

/** Builds the whole conversation from all events at once. The tests compare their results with this conversation. */
function replayed(events: readonly (AgentEvent & { execution: number })[], isOver: boolean): ConversationResponse {
  const replay = startReplay('c');
  let last = 0;
  for (const { execution, ...event } of events) {
    if (execution !== last) replay.endRun();
    last = execution;
    replay.apply(event as AgentEvent);
  }
  if (isOver) replay.endRun();
  return structuredClone(replay.read());
}

const text = (message_id: string, piece: string, step_id = 's') =>
  ({ type: 'text', step_id, message_id, role: 'assistant', text: piece }) as const;
const action = (action_id: string, step_id = 's') =>
  ({ type: 'action', step_id, action_id, category: 'command', name: 'shell', input: { a: 1 } }) as const;
const output = (action_id: string, piece: string) => ({ type: 'action_output', action_id, text: piece }) as const;
const result = (action_id: string, state: 'running' | 'completed' = 'completed') =>
  ({ type: 'action_result', action_id, state }) as const;

const stories: Record<string, Body[]> = {
  'texts and actions that interleave': [
    { type: 'turn_started', step_id: 's', prompt: 'Go' },
    text('m', 'a"\\\n'),
    action('a'),
    text('n', 'x'),
    output('a', 'one'),
    text('m', 'é🎉'),
    result('a', 'running'),
    output('a', 'two'),
    result('a'),
    { type: 'turn_finished', step_id: 's', summary: 'Done' },
    text('m', 'late'),
  ],
  'an action id that is used again, and output without an action': [
    output('a', 'stray'),
    action('a'),
    result('a'),
    output('a', 'stray'),
    result('a'),
    text('m', 'between'),
    action('a'),
    output('a', 'second'),
    result('a'),
  ],
  'actions that an earlier and the last execution leave open': [
    action('a'),
    text('m', 'first'),
    { ...text('m', 'of another message'), execution: 1 },
    { ...action('a'), execution: 1 },
    { ...output('a', 'x'), execution: 1 },
  ],
  'steps that interleave': [
    { type: 'turn_started', step_id: 's', prompt: '1' },
    { type: 'turn_started', step_id: 't', prompt: '2' },
    text('m', 'of t', 't'),
    text('n', 'of s', 's'),
    { type: 'turn_finished', step_id: 's', summary: 'first' },
    { type: 'turn_finished', step_id: 's' },
    text('o', 'after the end', 's'),
  ],
  'requests that another execution decides, and a decision without a request': [
    { type: 'blocked', step_id: 's', request: { request_id: 'q', kind: 'question', title: 'Which?' } },
    text('m', 'waits'),
    {
      ...{ type: 'decided', step_id: 's', request_id: 'q', kind: 'question', title: 'Which?' },
      ...{ decision: 'answer', by: 'person', execution: 1 },
    } as Body,
    {
      ...{ type: 'decided', step_id: 's', request_id: 'r', kind: 'permission', title: 'May I?' },
      ...{ decision: 'approve', by: 'policy', execution: 1 },
    } as Body,
    { type: 'notice', step_id: 's', name: 'plan', data: { steps: 2 }, execution: 1 },
  ],
};

describe.each(Object.entries(stories))('%s', (_name, bodies) => {
  it.each(['INPROGRESS', 'SUCCEEDED'] as const)(
    'a conversation that is read in parts is the same as the conversation built from all events at once, for a run that is %s',
    async (state) => {
      const { runId, events } = await store(bodies);
      expect(await readConversation(database.db, 'c', [{ id: runId, state }])).toEqual(
        replayed(events, state === 'SUCCEEDED'),
      );
    },
  );
});

it('a conversation that is read in several pages of events is the same as the conversation built from all events at once', async () => {
  const bodies: Body[] = Array.from({ length: 2500 }, (_, n) => {
    if (n % 7 === 0) return action(`a${n}`, `s${n % 3}`);
    if (n % 7 === 3) return result(`a${n - 3}`);
    if (n % 7 === 5) return output(`a${n - 5}`, `${n}`);
    return text(`m${n % 11}`, `${n} `.repeat(n % 50 === 1 ? 20_000 : 5), `s${n % 3}`);
  });
  const { runId, events } = await store(bodies);
  const read = await readConversation(database.db, 'c', [{ id: runId, state: 'SUCCEEDED' }]);
  expect(read).toEqual(replayed(events, true));
});

it('a run without messages of an agent has no conversation', async () => {
  const { runId } = await store([output('a', 'stray'), { type: 'agent_started', harness: 'oz', model_id: 'runbook' }]);
  expect(await readConversation(database.db, 'c', [{ id: runId, state: 'SUCCEEDED' }])).toBeNull();
  expect(await conversationText(readParts(database.db, [{ id: runId, state: 'SUCCEEDED' }]))).toBeUndefined();
});

it('the text of a conversation for a model contains only the end of a long conversation', async () => {
  const short = await store([
    { type: 'turn_started', step_id: 's', prompt: 'Go' },
    text('m', 'Work'),
    action('a'),
    text('m', 'ing'),
    output('a', 'one\n'),
    result('a'),
  ]);
  const of = (id: string) => conversationText(readParts(database.db, [{ id, state: 'SUCCEEDED' }]));
  expect(await of(short.runId)).toBe(
    '## user\nGo\n\n## assistant\nWorking\n\n## assistant\n[shell: {"a":1}]\n\n## tool\n[shell completed]\none',
  );
  const pieces = Array.from({ length: 300 }, (_, n) => text(n < 150 ? 'm' : `m${n}`, `${n} `.padEnd(3000, 'é')));
  const long = await store(pieces);
  const written = (await of(long.runId)) ?? '';
  const all = replayed(long.events, true)
    .steps.flatMap((step: Step) => step.messages)
    .map(({ content: [block] }) => `## assistant\n${block?.type === 'text' ? block.text.trim() : ''}`)
    .join('\n\n');
  expect(written).toBe(`[…] ${all.slice(-200_000)}`);
});

it('reading a conversation fails if events are deleted meanwhile', async () => {
  const { runId } = await store(Array.from({ length: 500 }, (_, n) => text(`m${n}`, 'x')));
  const parts = readParts(database.db, [{ id: runId, state: 'SUCCEEDED' }]);
  await parts.next();
  await database.db.query('DELETE FROM conversation_events WHERE run_id = $1 AND seq > 400', [runId]);
  const rest = async () => {
    for await (const _ of parts);
  };
  await expect(rest()).rejects.toThrow('changed while it was read');
});
