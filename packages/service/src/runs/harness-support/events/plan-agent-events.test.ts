import type { AgentEvent, AgentEventBody } from '@runyard/contract/runs/agent-events';
import { createRedactor, redacted } from '@runyard/system/redaction/redactor';
import { describe, expect, it } from 'vitest';
import { type EventAction, type PlanInput, planAgentEvents } from './plan-agent-events.ts';

const at = '2026-01-02T03:04:05Z';
const now = new Date('2026-05-06T07:08:09Z');
const secret = 'ryr_abcabcabd-secret';
const assignmentId = '01900000-0000-7000-8000-000000000001';
const noDrops = { event_bytes: 0, transcript_bytes: 0, dropped_events: 0, dropped_lines: 0 };
const mb = 1024 * 1024;

interface Situation {
  readonly execution?: Partial<PlanInput['execution']>;
  readonly run?: Partial<PlanInput['run']>;
  readonly limits?: Partial<PlanInput['limits']>;
  readonly room?: Partial<PlanInput['room']>;
}

const numbered = (bodies: readonly AgentEventBody[], first = 1): AgentEvent[] =>
  bodies.map((body, index) => ({ seq: first + index, occurred_at: at, ...body }) as AgentEvent);

function plan(events: readonly AgentEvent[], { execution, run, limits, room }: Situation = {}) {
  return planAgentEvents({
    events,
    execution: { phase: 'running', lastSeq: 0, heldTexts: {}, ...execution },
    run: { ...noDrops, assignment_id: null, ...run },
    limits: { eventBytes: mb, transcriptBytes: mb, teamBytes: mb, ...limits },
    room: { files: mb, texts: mb, ...room },
    redactor: createRedactor([secret]),
    now,
  });
}

const text = (words: string, more: object = {}): AgentEventBody =>
  ({ type: 'text', step_id: 's', message_id: 'm', role: 'assistant', text: words, ...more }) as AgentEventBody;
const begin: AgentEventBody = { type: 'turn_started', step_id: 's', prompt: 'Do it.' };
const setup: AgentEventBody = { type: 'setup_step_started', step_id: 'x', kind: 'setup_command', name: 'npm ci' };
const started: AgentEventBody = { type: 'agent_started', harness: 'oz', model_id: 'runbook' };
const output: AgentEventBody = { type: 'action_output', action_id: 'a', text: 'some output' };
const result: AgentEventBody = { type: 'action_result', action_id: 'a', state: 'completed', output: 'all of it' };
const line = (words: string): AgentEventBody => ({ type: 'transcript', line: JSON.stringify({ words }) });
const taken: AgentEventBody = { type: 'follow_up_taken', follow_up_id: 'f' };
const request = { request_id: 'q', kind: 'question' as const, title: 'Which?' };
const blocked: AgentEventBody = { type: 'blocked', step_id: 's', request: { ...request, resume: { id: 1 } } } as never;

/** Returns a short text for an action. For `store_events`, the text lists the event type of each row. */
function summary(action: EventAction): string {
  switch (action.kind) {
    case 'store_events':
      return `store ${action.rows
        .map((row) => JSON.parse(row))
        .map(({ event_type, event }) => event_type ?? event.type)
        .join(' ')}`;
    case 'report_full_conversation':
      return `report full at ${action.stepId}`;
    case 'take_follow_up':
      return `take ${action.followUpId}`;
    case 'start_run':
      return action.assignmentId === undefined ? 'start' : `claim ${action.assignmentId} and start`;
    case 'block_run':
      return `block for ${action.request.request_id}`;
    case 'mark_checkpoint':
      return `${action.checkpoint.state} checkpoint ${action.checkpoint.number}`;
  }
}

interface Case extends Situation {
  readonly title: string;
  readonly events: readonly AgentEventBody[];
  readonly actions: readonly string[];
}

const full = { eventBytes: 0 } as const;
const cases: Case[] = [
  {
    title: 'stores texts and output together',
    events: [begin, text('a'), output],
    actions: ['store turn_started text action_output'],
  },
  {
    title: 'marks a checkpoint after the earlier rows, and adds no row for the checkpoint',
    events: [begin, { type: 'checkpoint', number: 1, state: 'begun', turn: 1 }, text('a')],
    actions: ['store turn_started', 'begun checkpoint 1', 'store text'],
  },
  { title: 'stores setup steps in the timeline', events: [setup], actions: ['store setup_step_started'] },
  {
    title: 'starts the run after it has stored the earlier rows',
    events: [setup, started, begin],
    actions: ['store setup_step_started', 'start', 'store turn_started'],
  },
  {
    title: 'claims an assignment that the worker has not claimed yet',
    events: [started],
    execution: { phase: 'assigned' },
    run: { assignment_id: assignmentId },
    actions: [`claim ${assignmentId} and start`],
  },
  {
    title: 'claims an assignment once',
    events: [started, started],
    execution: { phase: 'assigned' },
    run: { assignment_id: assignmentId },
    actions: [`claim ${assignmentId} and start`, 'start'],
  },
  {
    title: 'claims nothing in a claimed execution',
    events: [started],
    execution: { phase: 'claimed' },
    actions: ['start'],
  },
  { title: 'takes a follow-up', events: [taken, begin], actions: ['take f', 'store turn_started'] },
  {
    title: 'leaves a follow-up to the next execution while stopping',
    events: [taken, text('a')],
    execution: { phase: 'stopping' },
    actions: ['store text'],
  },
  {
    title: 'blocks the run after it has stored the earlier rows',
    events: [text('a'), blocked, text('b')],
    actions: ['store text blocked', 'block for q', 'store text'],
  },
  { title: 'stores no row for the transcript', events: [line('a'), line('b')], actions: [] },
  {
    title: 'reports a full conversation at the step of the event',
    events: [text('a'), text('b')],
    limits: full,
    actions: ['report full at s'],
  },
  {
    title: 'reports a full conversation at an unknown step',
    events: [output],
    limits: full,
    actions: ['report full at undefined'],
  },
  {
    title: 'does not report a full conversation at a step of the setup',
    events: [setup],
    limits: full,
    actions: ['report full at undefined'],
  },
  {
    title: 'does not report a full conversation again',
    events: [text('a')],
    limits: full,
    run: { dropped_events: 1 },
    actions: [],
  },
  {
    title: 'stores the end of an action from the reserve',
    events: [output, result],
    limits: full,
    actions: ['report full at undefined', 'store action_result'],
  },
  {
    title: 'stores turns from the reserve before the report',
    events: [begin, result, text('a')],
    limits: full,
    actions: ['store turn_started action_result', 'report full at undefined'],
  },
  {
    title: 'blocks the run although the conversation is full',
    events: [text('a'), blocked],
    limits: full,
    actions: ['report full at s', 'store blocked', 'block for q'],
  },
  {
    title: 'reports a full transcript in the timeline',
    events: [line('a'), line('b')],
    limits: { transcriptBytes: 0 },
    actions: ['store output_limit_reached'],
  },
  {
    title: 'does not report a full transcript again',
    events: [line('a')],
    limits: { transcriptBytes: 0 },
    run: { dropped_lines: 1 },
    actions: [],
  },
];

describe('a plan for a batch of events', () => {
  it.each(cases)('$title', ({ events, actions, ...situation }) => {
    expect(plan(numbered(events), situation)?.actions.map(summary)).toEqual(actions);
  });
});

describe('the events of a plan', () => {
  it.each([
    { title: 'contain all of a new batch', seqs: [1, 2, 3], lastSeq: 0, acknowledged: 3, rows: 3 },
    { title: 'leave out events that were already applied', seqs: [1, 2, 3], lastSeq: 2, acknowledged: 3, rows: 1 },
    { title: 'end at a gap', seqs: [1, 2, 4], lastSeq: 0, acknowledged: 2, rows: 2 },
    {
      title: 'contain only one of two events with the same number',
      seqs: [1, 1, 2],
      lastSeq: 0,
      acknowledged: 2,
      rows: 2,
    },
  ])('$title', ({ seqs, lastSeq, acknowledged, rows }) => {
    const events = seqs.map((seq) => ({ ...numbered([text('a')])[0], seq }) as AgentEvent);
    const planned = plan(events, { execution: { lastSeq } });
    expect(planned?.acknowledged).toBe(acknowledged);
    expect(planned?.actions).toMatchObject([{ rows: { length: rows } }]);
  });

  it.each([
    { title: 'all events were applied', seqs: [1, 2], lastSeq: 2 },
    { title: 'the first new event is missing', seqs: [4, 5], lastSeq: 2 },
    { title: 'the batch is empty', seqs: [], lastSeq: 2 },
  ])('are missing, because there is no plan, if $title', ({ seqs, lastSeq }) => {
    const events = seqs.map((seq) => ({ ...numbered([text('a')])[0], seq }) as AgentEvent);
    expect(plan(events, { execution: { lastSeq } })).toBeUndefined();
  });
});

const rowsOf = (actions: readonly EventAction[] = []) =>
  actions.flatMap((action) => (action.kind === 'store_events' ? action.rows.map((row) => JSON.parse(row)) : []));

describe('the rows of a plan', () => {
  it('have positions that begin at 0 in each action', () => {
    const planned = plan(numbered([text('a'), text('b'), started, text('c')]));
    expect(rowsOf(planned?.actions).map(({ position }) => position)).toEqual([0, 1, 0]);
  });

  it('are each counted exactly once, with their whole size', () => {
    const planned = plan(numbered([text('a'), started, text('b'), line('c')]));
    const bytes = (planned?.actions ?? []).map((action) => (action.kind === 'store_events' ? action.bytes : 0));
    expect(bytes.every((each) => each === 0 || each > 100)).toBe(true);
    expect(bytes.reduce((sum, each) => sum + each, 0)).toBe(planned?.added.eventBytes);
  });

  it('have the time of arrival if their event has no valid time', () => {
    const planned = plan([{ ...numbered([text('a')])[0], occurred_at: 'no time' } as AgentEvent]);
    const occurred_at = now.toISOString();
    expect(rowsOf(planned?.actions)).toMatchObject([{ occurred_at, event: { occurred_at } }]);
  });

  it('omit members of a request that only the agent needs to continue', () => {
    const planned = plan(numbered([blocked]));
    expect(rowsOf(planned?.actions)[0].event.request).toEqual(request);
    expect(planned?.actions[1]).toMatchObject({ request: { ...request, resume: { id: 1 } } });
  });
});

describe('the secrets of a batch', () => {
  it('are removed from text and transcript even if two batches split them', () => {
    const cut = 8;
    const first = plan(numbered([text(`It is ${secret.slice(0, cut)}`), line(secret)]));
    expect(first?.heldTexts).toEqual({ 'text m': secret.slice(0, cut) });
    const situation = { execution: { lastSeq: 2, heldTexts: first?.heldTexts ?? {} } };
    const second = plan(numbered([text(`${secret.slice(cut)}!`)], 3), situation);
    expect(second?.heldTexts).toEqual({});
    const said = [...rowsOf(first?.actions), ...rowsOf(second?.actions)].map(({ event }) => event.text);
    expect(said).toEqual(['It is ', `${redacted}!`]);
    expect(first?.transcript).toBe(`${JSON.stringify({ words: redacted })}\n`);
  });

  it('are removed without a change to the object `heldTexts` of the caller', () => {
    const heldTexts = { 'text m': 'ryr_' };
    plan(numbered([text('x')]), { execution: { heldTexts } });
    expect(heldTexts).toEqual({ 'text m': 'ryr_' });
  });
});

describe('a plan for a run that reaches a limit', () => {
  it('counts dropped events and lines', () => {
    const limits = { eventBytes: 0, transcriptBytes: 0 };
    expect(plan(numbered([text('a'), begin, result, line('b'), line('c')]), { limits })?.added).toMatchObject({
      droppedEvents: 2,
      droppedLines: 2,
      transcriptBytes: 0,
    });
  });

  it('ends the transcript with a line that names the limit', () => {
    const planned = plan(numbered([line('a'), line('b'.repeat(500)), line('c')]), { limits: { transcriptBytes: 200 } });
    const lines = planned?.transcript
      .trimEnd()
      .split('\n')
      .map((each) => JSON.parse(each));
    expect(lines).toMatchObject([{ words: 'a' }, { runyard: { output_limit_reached: { limit_bytes: 200 } } }]);
  });
});
