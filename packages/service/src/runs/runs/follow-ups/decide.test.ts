import { maxWaitingFollowups } from '@runyard/contract/limits';
import type { RunState } from '@runyard/contract/runs/states';
import { describe, expect, test } from 'vitest';
import type { OpenRequest } from '../../executions/idle/debug-window.ts';
import type { Phase } from '../../executions/phases.ts';
import { decideFollowup, type FollowupContent, type FollowupSituation } from './decide.ts';

const phases = ['queued', 'assigned', 'claimed', 'running', 'idle', 'stopping', 'ended'] as const satisfies Phase[];

/**
 * For each state of the run (row) and phase of its execution (column): the effect of a follow-up. In the phase `idle`, the agent waits in a
 * live sandbox.
 */
const table: Record<RunState, readonly string[]> = {
  //            queued      assigned    claimed     running     idle        stopping    ended
  QUEUED: /*    */ ['join', 'join', 'join', 'join', 'join', 'join', 'join'],
  PENDING: /*   */ ['join', 'join', 'join', 'join', 'join', 'join', 'join'],
  CLAIMED: /*   */ ['join', 'join', 'join', 'join', 'join', 'join', 'join'],
  INPROGRESS: /**/ ['join', 'join', 'join', 'join', 'join', 'join', 'join'],
  SUCCEEDED: /* */ ['continue', 'continue', 'continue', 'continue', 'resume', 'continue', 'continue'],
  BLOCKED: /*   */ ['continue', 'continue', 'continue', 'continue', 'answer', 'continue', 'continue'],
  FAILED: /*    */ ['continue', 'continue', 'continue', 'debug', 'debug', 'continue', 'continue'],
  ERROR: /*     */ ['continue', 'continue', 'continue', 'continue', 'continue', 'continue', 'continue'],
  CANCELLED: /* */ ['continue', 'continue', 'continue', 'continue', 'continue', 'continue', 'continue'],
};
const rows = (Object.keys(table) as RunState[]).flatMap((state) =>
  phases.map((phase, column) => ({ state, phase, way: table[state][column] ?? '' })),
);

const question: OpenRequest = {
  request_id: 'q1',
  kind: 'question',
  title: 'Which one?',
  asked_at: '2026-01-02T03:04:05.000Z',
};

/** Describes a run that has completed a turn. It asks a question if its state and phase allow this. */
const situation = (state: RunState, phase: Phase, more: Partial<FollowupSituation> = {}): FollowupSituation => ({
  state,
  phase,
  openRequest: state === 'BLOCKED' ? question : null,
  debugRequest: state === 'FAILED' ? question : null,
  hasConversation: true,
  hasStarted: true,
  waiting: 0,
  ...more,
});
const asks = (state: RunState, phase: Phase) => state === 'BLOCKED' || (state === 'FAILED' && phase === 'idle');
const words: FollowupContent = { hasMessage: true, hasFiles: false };
const nothing: FollowupContent = { hasMessage: false, hasFiles: false };

test.each(rows)(
  'a follow-up has the effect $way when the run is $state and its execution $phase',
  ({ state, phase, way }) => {
    const expected = { kind: way, question: asks(state, phase) ? question : null };
    expect(decideFollowup(situation(state, phase), words)).toMatchObject(expected);
  },
);

test.each(rows)(
  'a follow-up that begins anew starts a new execution, or is refused, when the run is $state and its execution $phase',
  ({ state, phase, way }) => {
    const decide = (content: Partial<FollowupContent>) =>
      decideFollowup(situation(state, phase), { ...words, workspace: 'changes', ...content });
    if (way === 'join') expect(decide({})).toMatchObject({ kind: 'refuse', path: 'workspace' });
    else expect(decide({})).toMatchObject({ kind: 'continue', question: null });
    // An answer is for the sandbox that asked.
    expect(decide({ decision: 'approve' })).toMatchObject({ kind: 'refuse', path: 'decision' });
  },
);

describe('the decision about an answer', () => {
  test.each(rows)(
    'accepts only the id of the open question when the run is $state and its execution $phase',
    ({ state, phase, way }) => {
      const decide = (content: Partial<FollowupContent>) =>
        decideFollowup(situation(state, phase), { ...words, ...content });
      const wrongId = { kind: 'refuse', path: 'request_id' };
      expect(decide({ request_id: 'q0' })).toMatchObject(wrongId);
      if (asks(state, phase)) {
        expect(decide({ request_id: 'q1', decision: 'deny' })).toMatchObject({ kind: way, question });
        expect(decide({ decision: 'deny', hasMessage: false })).toMatchObject({ kind: way, question });
      } else {
        expect(decide({ request_id: 'q1' })).toMatchObject(wrongId);
        expect(decide({ decision: 'deny' })).toMatchObject({ kind: 'refuse', path: 'decision' });
      }
    },
  );

  test('names, in a refusal, the state of the run or the id of the open question', () => {
    const reasonOf = (state: RunState) =>
      decideFollowup(situation(state, 'ended', { openRequest: null }), { ...words, decision: 'deny' });
    expect(reasonOf('SUCCEEDED')).toMatchObject({
      reason: 'the run is SUCCEEDED, not BLOCKED, and has no open question',
    });
    expect(reasonOf('FAILED')).toMatchObject({ reason: 'the run is FAILED and has no open question' });
    expect(decideFollowup(situation('BLOCKED', 'idle'), { ...words, request_id: 'q0' })).toMatchObject({
      reason: 'is not open any more; the run asks q1 now',
    });
  });
});

describe('the decision about an empty follow-up', () => {
  test.each(rows)(
    'accepts the follow-up only if it starts a new execution that continues a conversation: run $state, execution $phase',
    (row) => {
      const { state, phase, way } = row;
      const kind = way === 'continue' ? 'continue' : 'refuse_empty';
      expect(decideFollowup(situation(state, phase), nothing).kind).toBe(kind);
      expect(decideFollowup(situation(state, phase, { hasConversation: false }), nothing).kind).toBe('refuse_empty');
    },
  );

  test('accepts a follow-up that has no message but has files', () => {
    expect(decideFollowup(situation('INPROGRESS', 'running'), { ...nothing, hasFiles: true }).kind).toBe('join');
  });
});

test.each(rows)(
  'above the maximum of waiting follow-ups, only a new execution accepts one more: the run is $state and its execution $phase',
  ({ state, phase, way }) => {
    const full = situation(state, phase, { waiting: maxWaitingFollowups });
    expect(decideFollowup(full, words).kind).toBe(way === 'continue' ? 'continue' : 'refuse_full');
    const almostFull = situation(state, phase, { waiting: maxWaitingFollowups - 1 });
    expect(decideFollowup(almostFull, words).kind).toBe(way);
  },
);

test.each([
  [true, true, false],
  [true, false, true],
  [false, true, true],
  [false, false, true],
])(
  'a follow-up to a run with a conversation (%s) and a start (%s) begins a new execution with the prompt of the run: %s',
  (hasConversation, hasStarted, withPrompt) => {
    const decision = decideFollowup(situation('ERROR', 'ended', { hasConversation, hasStarted }), words);
    expect(decision).toMatchObject({ kind: 'continue', withPrompt, question: null });
  },
);

test.each([
  ['idle', true],
  ['running', false],
] as const)('a follow-up wakes an agent that is %s in the sandbox of a failed setup: %s', (phase, wakes) => {
  expect(decideFollowup(situation('FAILED', phase), words)).toMatchObject({ kind: 'debug', wakes });
});

test.each([
  ['queued_prompt', 'QUEUED', 'queued', false],
  ['queued_prompt', 'PENDING', 'assigned', false],
  ['queue_pending', 'CLAIMED', 'claimed', false],
  ['queue_pending', 'QUEUED', 'queued', true],
  ['live_session', 'INPROGRESS', 'running', true],
  ['queue_pending', 'INPROGRESS', 'stopping', true],
  ['live_session', 'BLOCKED', 'idle', true],
  ['live_session', 'SUCCEEDED', 'idle', true],
  ['handoff_execution', 'SUCCEEDED', 'stopping', true],
  ['live_session', 'FAILED', 'running', false],
  ['handoff_execution', 'CANCELLED', 'ended', false],
] as const)('the sender gets the routing %s for a run in %s with an execution in %s, started: %s', (...row) => {
  const [routing, state, phase, hasStarted] = row;
  expect(decideFollowup(situation(state, phase, { hasStarted }), words)).toMatchObject({ routing });
});
