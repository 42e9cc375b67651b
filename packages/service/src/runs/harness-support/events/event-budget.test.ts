import type { AgentEvent, AgentEventBody } from '@runyard/contract/runs/agent-events';
import { beforeEach, expect, it } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestExecutions, type TestExecutions } from '../../../../test/executions.ts';
import { readConversation } from '../../../../test/read.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { readTimeline } from '../../executions/timeline/timeline.ts';
import { applyAgentEvents } from './apply-agent-events.ts';
import { reserveBytes } from './event-budget.ts';

const eventBytes = 20_000;
const transcriptBytes = 5_000;

let t: TestExecutions;
let session: RunSession;
let seq = 0;

beforeEach(async () => {
  t = closeAtEnd(await openTestExecutions({ limits: { eventBytes, transcriptBytes } }));
  session = await t.newSession();
  seq = 0;
  await send({ type: 'agent_started', harness: 'oz', model_id: 'runbook' });
});

const at = '2026-01-02T03:04:05.000Z';
async function send(...bodies: AgentEventBody[]): Promise<void> {
  const events = bodies.map((body) => ({ seq: ++seq, occurred_at: at, ...body }) as AgentEvent);
  expect(await applyAgentEvents(t.deps, session, events)).toEqual({ acknowledged: seq });
}

const text = (words: string): AgentEventBody => ({
  type: 'text',
  step_id: 's',
  message_id: 'm',
  role: 'assistant',
  text: words,
});
const begin: AgentEventBody = { type: 'turn_started', step_id: 's', prompt: 'Do it.' };
const action: AgentEventBody = {
  type: 'action',
  step_id: 's',
  action_id: 'a',
  category: 'command',
  name: 'shell',
  input: {},
};
const output = (words: string): AgentEventBody => ({ type: 'action_output', action_id: 'a', text: words });
const line = (words: string): AgentEventBody => ({ type: 'transcript', line: JSON.stringify({ words }) });

const run = async () => (await t.deps.db.query<Record<string, number>>('SELECT * FROM runs'))[0] ?? {};
/** Returns the bytes of the stored events. */
async function storedBytes(): Promise<number> {
  const [row] = await t.deps.db.query<{ bytes: string }>(
    "SELECT coalesce(sum(octet_length(event::text)), 0) AS bytes FROM conversation_events WHERE event->>'name' IS DISTINCT FROM 'output_limit_reached'",
  );
  return Number(row?.bytes);
}
const limitEvents = async () =>
  (await readTimeline(t.deps.db, session.runId)).filter(({ event_type }) => event_type === 'output_limit_reached');
const conversation = () =>
  readConversation(t.deps.db, 'c', [{ id: session.runId, state: 'INPROGRESS' }]).then((read) => read?.steps ?? []);

it('text and output are stored up to the limit, then the service counts the dropped events and reports the limit once', async () => {
  await send(begin, action);
  for (let batch = 0; batch < 60; batch += 1) await send(text('x'.repeat(500)), output('y'.repeat(500)));
  expect(await storedBytes()).toBeLessThanOrEqual(eventBytes);
  expect(await storedBytes(), 'nearly up to the limit').toBeGreaterThan(eventBytes * 0.7);
  expect(await limitEvents()).toMatchObject([
    {
      execution_id: 1,
      payload: {
        what: 'conversation',
        limit_bytes: eventBytes,
        message: expect.stringContaining('RUNYARD_RUN_EVENTS_MB'),
      },
    },
  ]);
  const shown = JSON.stringify(await conversation());
  expect(shown.split('"output_limit_reached"')).toHaveLength(2);
  const { rows } = await t.deps.db.pool.query('SELECT count(*)::int AS kept FROM conversation_events');
  // Subtract three stored events that are neither text nor output: the first two, and the report of the limit.
  expect(Number((await run()).dropped_events)).toBe(120 - (rows[0].kept - 3));
});

it('the limit also holds for many small events', async () => {
  await send(begin);
  await send(...Array.from({ length: 900 }, () => text('.')));
  const { rows } = await t.deps.db.pool.query('SELECT count(*)::int AS kept FROM conversation_events');
  expect(rows[0].kept, 'each counts with the size of its row').toBeLessThan(eventBytes / 220);
});

it('turns, questions, decisions and the ends of actions are stored even above the limit', async () => {
  await send(begin, action, text('x'.repeat(eventBytes)), text('more'), output('more'));
  await send({ type: 'action_result', action_id: 'a', state: 'completed', output: 'z'.repeat(5_000), exit_code: 0 });
  await send({ type: 'turn_finished', step_id: 's', summary: 'x'.repeat(100_000) });
  await send({ ...begin, step_id: 's2', prompt: 'And then? '.repeat(10_000) }, text('dropped'));
  const request = { request_id: 'q', kind: 'question' as const, title: 'Which?' };
  await send({ type: 'blocked', step_id: 's2', request });
  expect(await run()).toMatchObject({ state: 'BLOCKED', open_request: { request_id: 'q' } });
  const steps = await conversation();
  expect(steps.map(({ completed_at }) => completed_at !== undefined)).toEqual([true, false]);
  const shown = JSON.stringify(steps);
  expect(shown).toContain('"state":"completed"');
  expect(shown).toContain('"title":"Which?"');
  expect(shown).not.toContain('more');
  expect(shown).not.toContain('dropped');
  expect(await storedBytes(), 'long texts are cut').toBeLessThan(60_000);
});

it('a question blocks the run even if the reserve is used up and its event cannot be stored', async () => {
  await send(begin, text('x'.repeat(eventBytes)), text('x'));
  await t.deps.db.query('UPDATE runs SET event_bytes = $1', [eventBytes + reserveBytes]);
  const request = { request_id: 'q', kind: 'question' as const, title: 'Which?' };
  await send({ ...begin, step_id: 's2' }, { type: 'blocked', step_id: 's2', request });
  expect(await conversation()).toHaveLength(1);
  expect(await run()).toMatchObject({ state: 'BLOCKED', dropped_events: 4 });
});

it('the transcript has a separate limit, and its last line reports that the limit was reached', async () => {
  await send(begin);
  for (let batch = 0; batch < 20; batch += 1) await send(line('x'.repeat(300)), line('x'.repeat(300)));
  const chunks = await t.deps.db.query<{ lines: string }>('SELECT lines FROM transcript_chunks ORDER BY agent_seq');
  const lines = chunks.flatMap(({ lines }) => lines.trimEnd().split('\n'));
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({
    runyard: { output_limit_reached: { limit_bytes: transcriptBytes } },
  });
  expect(lines.slice(0, -1).join('\n').length).toBeLessThanOrEqual(transcriptBytes);
  expect(lines.length).toBeGreaterThan(10);
  expect(Number((await run()).dropped_lines)).toBe(40 - (lines.length - 1));
  expect(await limitEvents()).toMatchObject([{ payload: { what: 'transcript' } }]);
  const [execution] = await t.deps.db.query<{ transcript_bytes: number }>('SELECT transcript_bytes FROM executions');
  expect(Number(execution?.transcript_bytes)).toBe(chunks.reduce((sum, chunk) => sum + chunk.lines.length, 0));
  await send(text('The conversation goes on.'));
  expect(JSON.stringify(await conversation())).toContain('The conversation goes on.');
});

it('a batch that arrives twice counts only once', async () => {
  await send(begin, text('x'), line('x'));
  const before = await run();
  const again = { ...text('x'), seq: 3, occurred_at: at } as AgentEvent;
  await applyAgentEvents(t.deps, session, [again]);
  expect(await run()).toMatchObject({ event_bytes: before.event_bytes, transcript_bytes: before.transcript_bytes });
});

it('batches that arrive at the same time do not exceed the limit', async () => {
  await send(begin);
  const batches = Array.from({ length: 8 }, (_, index) =>
    Array.from(
      { length: 10 * (index + 1) },
      (_, n) => ({ ...text('x'.repeat(900)), seq: seq + n + 1, occurred_at: at }) as AgentEvent,
    ),
  );
  await Promise.all(batches.map((batch) => applyAgentEvents(t.deps, session, batch)));
  expect(await storedBytes()).toBeLessThanOrEqual(eventBytes);
  expect(await limitEvents()).toHaveLength(1);
});
