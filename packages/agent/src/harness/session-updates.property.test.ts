/** Tests that session updates of any shape, which a harness may send, become events that the service accepts. */
import { AgentEvent, type AgentEventBody } from '@runyard/contract/runs/agent-events';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { lineSplitter } from '../commands/json-lines.ts';
import { readMessageLine } from './message-line.ts';
import { sessionUpdates } from './session-updates.ts';

const text = fc.string({ unit: 'binary', maxLength: 30 });
const anything = fc.jsonValue({ maxDepth: 3 });
const content = fc.oneof(
  anything,
  fc.record(
    { type: fc.constantFrom('text', 'image', 'resource', 'resource_link', 'else'), text, uri: text },
    { requiredKeys: [] },
  ),
);
const contents = fc.array(
  fc.oneof(
    anything,
    fc.record(
      { type: fc.constantFrom('content', 'diff', 'terminal'), content, path: text },
      { requiredKeys: ['type'] },
    ),
  ),
  { maxLength: 3 },
);
const kinds = [
  'agent_message_chunk',
  'agent_thought_chunk',
  'tool_call',
  'tool_call_update',
  'plan',
  'usage_update',
  'current_mode_update',
];
/** Use few different ids, so that several updates are about the same tool call. */
const ids = fc.oneof(fc.constantFrom('a', 'b', ''), anything);
const update = fc.oneof(
  anything,
  fc.record(
    {
      sessionUpdate: fc.oneof(fc.constantFrom(...kinds), text),
      content: fc.oneof(content, contents),
      toolCallId: ids,
      messageId: ids,
      title: fc.oneof(text, anything),
      kind: fc.oneof(fc.constantFrom('execute', 'edit', 'read', 'other'), anything),
      status: fc.oneof(fc.constantFrom('pending', 'in_progress', 'completed', 'failed'), anything),
      rawInput: anything,
      rawOutput: fc.oneof(
        anything,
        fc.record(
          { output: text, exit_code: fc.oneof(fc.integer(), fc.double()), duration_ms: fc.double() },
          { requiredKeys: [] },
        ),
      ),
      _meta: fc.oneof(
        anything,
        fc.record({ terminal_output: fc.record({ data: text }), terminal_exit: anything }, { requiredKeys: [] }),
      ),
      used: anything,
    },
    { requiredKeys: ['sessionUpdate'] },
  ),
);

function eventsOf(updates: readonly unknown[]): AgentEventBody[] {
  const events: AgentEventBody[] = [];
  const session = sessionUpdates({ emit: (event) => events.push(event), stepId: () => 'step', mcpServers: ['server'] });
  session.startTurn();
  for (const each of updates) session.update(each);
  session.endTurn('the turn has ended');
  return events;
}

/** Numbers that JSON allows but that JavaScript cannot represent exactly. */
const beyondSafe = {
  sessionUpdate: 'tool_call_update',
  toolCallId: 'a',
  status: 'completed',
  rawOutput: { exit_code: -(2 ** 53), output_bytes: 2 ** 53 },
};

test('updates of any shape become events that the service accepts, and each action ends once', () => {
  fc.assert(
    fc.property(fc.array(update, { maxLength: 12 }), (updates) => {
      const events = eventsOf(updates);
      for (const [index, event] of events.entries()) {
        // The event in the form in which the service receives it.
        const sent = JSON.parse(JSON.stringify({ ...event, seq: index + 1, occurred_at: '2026-11-01T00:00:00Z' }));
        expect(AgentEvent.safeParse(sent).error, JSON.stringify(sent)).toBeUndefined();
      }
      const begun = new Set(events.flatMap((event) => (event.type === 'action' ? [event.action_id] : [])));
      const ended = events.flatMap((event) => (event.type === 'action_result' ? [event.action_id] : []));
      expect(ended.toSorted()).toEqual([...begun].sort());
    }),
    { numRuns: 150, examples: [[[beyondSafe]]] },
  );
});

test('the text of a message does not depend on how the harness splits it into chunks', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: 'binary', maxLength: 8 }), { maxLength: 8 }),
      fc.array(fc.nat(), { maxLength: 6 }),
      (parts, places) => {
        const whole = parts.join('');
        const cuts = [0, ...places.map((place) => place % (whole.length + 1)).sort((a, b) => a - b), whole.length];
        const chunks = cuts.slice(1).map((end, index) => whole.slice(cuts[index], end));
        const said = eventsOf(
          chunks.map((piece) => ({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: piece } })),
        );
        expect(said.map((event) => (event.type === 'text' ? event.text : '?')).join('')).toBe(whole.toWellFormed());
      },
    ),
  );
});

test('the messages of a harness do not depend on how its output is split into pieces, even between lines that are not messages', () => {
  const line = fc.oneof(
    fc
      .record({ jsonrpc: fc.constant('2.0'), method: text, params: anything })
      .map((message) => JSON.stringify(message)),
    fc.string({ unit: 'binary', maxLength: 20 }).map((stray) => stray.replaceAll('\n', ' ')),
  );
  const messagesOf = (pieces: readonly Buffer[]) => {
    const lines = lineSplitter(1024 * 1024, 1024);
    const all = [...pieces.flatMap((piece) => [...lines.push(piece)]), ...lines.end()];
    return all.flatMap((each) => readMessageLine(each.text)?.message ?? []);
  };
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 10 }), (lines, places) => {
      const bytes = Buffer.from(lines.join('\n'));
      const cuts = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
      const pieces = cuts.slice(1).map((end, index) => bytes.subarray(cuts[index], end));
      expect(messagesOf(pieces)).toEqual(lines.flatMap((each) => readMessageLine(each)?.message ?? []));
    }),
  );
});
