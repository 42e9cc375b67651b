import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import { redacted } from '@runyard/system/redaction/redactor';
import { beforeEach, expect, it } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestExecutions, type TestExecutions } from '../../../../test/executions.ts';
import { cancelRun } from '../../executions/cancel/cancel.ts';
import { authenticateRunToken, type RunSession } from '../../executions/run-tokens/sessions.ts';
import { addReadySandbox } from '../../executions/timeline/worker-reports.ts';
import { applyAgentEvents } from './apply-agent-events.ts';

let t: TestExecutions;
let session: RunSession;

beforeEach(async () => {
  t = closeAtEnd(await openTestExecutions());
  session = await t.newSession();
});

const at = '2026-01-02T03:04:05.000Z';
/**
 * Redaction holds back the end of a text if this end may be the beginning of the run token in some encoding, for example r, c or ye. So the
 * texts of these tests end with other letters.
 */
const text = (seq: number, words: string): AgentEvent => ({
  seq,
  occurred_at: at,
  type: 'text',
  step_id: 's',
  message_id: 'm',
  role: 'assistant',
  text: words,
});

async function stored(): Promise<AgentEvent[]> {
  const { rows } = await t.deps.db.pool.query('SELECT event FROM conversation_events WHERE run_id = $1 ORDER BY seq', [
    session.runId,
  ]);
  return rows.map((row) => row.event);
}

const words = async () => (await stored()).map((event) => ('text' in event ? event.text : event.type)).join('|');

it('events that are sent twice are applied only once', async () => {
  expect(await applyAgentEvents(t.deps, session, [text(1, 'a'), text(2, 'b')])).toEqual({ acknowledged: 2 });
  expect(await applyAgentEvents(t.deps, session, [text(1, 'a'), text(2, 'b'), text(3, 'd')])).toEqual({
    acknowledged: 3,
  });
  expect(await words()).toBe('a|b|d');
});

it('a batch that arrives on several connections at the same time is applied only once', async () => {
  const batch = [text(1, 'a'), text(2, 'b')];
  const outcomes = await Promise.all([1, 2, 3, 4].map(() => applyAgentEvents(t.deps, session, batch)));
  expect(outcomes).toEqual(outcomes.map(() => ({ acknowledged: 2 })));
  expect(await words()).toBe('a|b');
});

it('only the events before a gap are applied and acknowledged', async () => {
  expect(await applyAgentEvents(t.deps, session, [text(1, 'a'), text(3, 'c')])).toEqual({ acknowledged: 1 });
  expect(await words()).toBe('a');
});

it('the timeline shows backend and isolation of the sandbox before agent_started, even if the worker reports the sandbox later', async () => {
  const { db } = t.deps;
  const missing = [{ feature: 'kernel', reason: 'sandboxes share the kernel' }];
  const level = { backend: 'kubernetes', features: ['images'], missing };
  await db.query(`UPDATE worker_connections SET sandbox = $1`, [JSON.stringify(level)]);
  const started = { seq: 1, occurred_at: at, type: 'agent_started', harness: 'oz', model_id: 'runbook' } as const;
  await applyAgentEvents(t.deps, session, [started]);
  const timeline = () =>
    db.query<{ event_type: string; payload: object }>(
      `SELECT event_type, payload FROM run_events WHERE event_type IN ('worker_container_ready', 'agent_started') ORDER BY seq`,
    );
  expect(await timeline()).toMatchObject([
    { event_type: 'worker_container_ready', payload: level },
    { event_type: 'agent_started' },
  ]);
  const sandbox = { backend: 'kubernetes', spawn_ms: 1_500 };
  for (let times = 0; times < 2; times += 1) await db.transaction((tx) => addReadySandbox(tx, session, sandbox));
  expect((await timeline())[0]).toEqual({ event_type: 'worker_container_ready', payload: { ...level, ...sandbox } });
  expect(await timeline()).toHaveLength(2);
});

it('agent_started makes the run INPROGRESS and starts its deadline', async () => {
  await applyAgentEvents(t.deps, session, [
    { seq: 1, occurred_at: at, type: 'agent_started', harness: 'oz', model_id: 'runbook' },
  ]);
  const { rows } = await t.deps.db.pool.query(
    "SELECT r.state, e.phase, e.deadline_at > now() + interval '3 hours' AS far FROM runs r JOIN executions e ON e.run_id = r.id WHERE r.id = $1",
    [session.runId],
  );
  expect(rows).toEqual([{ state: 'INPROGRESS', phase: 'running', far: true }]);
});

it('the last letter of a message is stored before the next action, or when the agent reports a pause, and not only at the end of the turn', async () => {
  await applyAgentEvents(t.deps, session, [text(1, 'Now it is clear')]);
  expect(await words()).toBe('Now it is clea');
  const action = {
    seq: 2,
    occurred_at: at,
    type: 'action',
    step_id: 's',
    action_id: 'a',
    category: 'command',
  } as const;
  await applyAgentEvents(t.deps, session, [{ ...action, name: 'shell', input: {} }]);
  expect(await words()).toBe('Now it is clea|r|action');
  await applyAgentEvents(t.deps, session, [{ ...text(3, 'No error'), message_id: 'n' } as AgentEvent]);
  expect(await applyAgentEvents(t.deps, session, [{ ...text(4, ''), message_id: 'n' } as AgentEvent])).toEqual({
    acknowledged: 4,
  });
  expect(await words()).toBe('Now it is clea|r|action|No erro|r');
});

it('the run token is never stored, even if its parts arrive in two batches', async () => {
  const half = Math.floor(session.token.length / 2);
  await applyAgentEvents(t.deps, session, [text(1, `it is ${session.token.slice(0, half)}`)]);
  await applyAgentEvents(t.deps, session, [
    text(2, `${session.token.slice(half)}!`),
    { seq: 3, occurred_at: at, type: 'transcript', line: JSON.stringify({ env: session.token }) },
    {
      seq: 4,
      occurred_at: at,
      type: 'action_result',
      action_id: 'x',
      state: 'completed',
      output: { env: [session.token] },
    },
  ]);
  const { rows } = await t.deps.db.pool.query('SELECT lines FROM transcript_chunks WHERE execution_id = $1', [
    session.executionId,
  ]);
  expect(rows).toEqual([{ lines: `{"env":"${redacted}"}\n` }]);
  expect(JSON.stringify(await stored())).not.toContain(session.token.slice(half));
  expect(await words()).toBe(`it is |${redacted}!|action_result`);
});

it('a NUL character in a text is stored as U+FFFD', async () => {
  await applyAgentEvents(t.deps, session, [
    text(1, 'a\u0000b'),
    { seq: 2, occurred_at: 'no time', type: 'notice', step_id: 's', name: 'n\u0000', data: { 'k\u0000': ['v\u0000'] } },
  ]);
  expect(await stored()).toMatchObject([{ text: 'a\ufffdb' }, { name: 'n\ufffd', data: { 'k\ufffd': ['v\ufffd'] } }]);
});

it.each(['+200000-01-01T00:00:00Z', '-000001-01-01T00:00:00Z', '0000-01-01T00:00:00Z', 'no time'])(
  'stores the present time for an event with the invalid time %s',
  async (occurred_at) => {
    const step: AgentEvent = {
      seq: 1,
      occurred_at,
      type: 'setup_step_started',
      step_id: 's',
      kind: 'setup_command',
      name: 'n',
    };
    expect(await applyAgentEvents(t.deps, session, [step])).toEqual({ acknowledged: 1 });
    const { rows } = await t.deps.db.pool.query(
      `SELECT occurred_at > now() - interval '1 minute' AS is_now FROM run_events
       WHERE run_id = $1 AND event_type = 'setup_step_started'`,
      [session.runId],
    );
    expect(rows).toEqual([{ is_now: true }]);
  },
);

it.each(['', 'no time', '2026-11-21', '2026-11-21T10:00:00+02:00', '2026-02-30T25:00:00Z'])(
  'stores a time in UTC, in the format of answers, for an event with the time %j',
  async (occurred_at) => {
    await applyAgentEvents(t.deps, session, [{ ...text(1, 'a'), occurred_at }]);
    const [{ occurred_at: storedAt } = {}] = (await stored()) as { occurred_at?: string }[];
    expect(storedAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
    expect(new Date(storedAt ?? '')).not.toEqual(new Date(Number.NaN));
  },
);

it('events that arrive after a cancel are stored, and do not start the run again', async () => {
  expect(await cancelRun(t.deps, session.runId)).toBe('cancelled');
  const started: AgentEvent = { seq: 2, occurred_at: at, type: 'agent_started', harness: 'oz', model_id: 'runbook' };
  expect(await applyAgentEvents(t.deps, session, [text(1, 'the end'), started])).toEqual({ acknowledged: 2 });
  expect(await words()).toBe('the end');
  const { rows } = await t.deps.db.pool.query('SELECT state FROM runs WHERE id = $1', [session.runId]);
  expect(rows).toEqual([{ state: 'CANCELLED' }]);
});

it('the service refuses the events and the token of an ended execution', async () => {
  await t.deps.db.pool.query("UPDATE executions SET phase = 'ended' WHERE id = $1", [session.executionId]);
  expect(await applyAgentEvents(t.deps, session, [text(1, 'late')])).toBe('superseded');
  expect(await authenticateRunToken(t.deps.db, session.token)).toBeNull();
});
