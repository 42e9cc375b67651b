import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import type { AgentRequest } from '@runyard/contract/runs/approvals';
import { describe, expect, test } from 'vitest';
import { refusalText } from '../harness/oz/ask-first.ts';
import type { FollowUp } from '../service/inbox.ts';
import { fingerprint } from './approval-request.ts';
import { createApprovals } from './approvals.ts';

const action = (command: string) => ({ id: 'a1', name: 'shell', category: 'command' as const, input: { command } });
const permission = (command = 'true') => ({ kind: 'permission' as const, title: command, action: action(command) });
const question = { kind: 'question' as const, title: 'Which one?' };
const followUp = (answers: string | undefined, rest: Partial<FollowUp> = {}): FollowUp => ({
  type: 'follow_up',
  id: 'f1',
  position: 1,
  message: '',
  ...(answers === undefined ? {} : { answers }),
  ...rest,
});

function open(flush: () => Promise<void> = async () => {}) {
  const events: AgentEventBody[] = [];
  const approvals = createApprovals({ emit: (event) => events.push(event), flush });
  const abort = new AbortController();
  const asked = async () => {
    for (;;) {
      const last = events.findLast((event) => event.type === 'blocked' || event.type === 'decided');
      if (last?.type === 'blocked') return last.request.request_id;
      await new Promise(setImmediate);
    }
  };
  const types = () => events.map((event) => event.type);
  return { approvals, events, types, abort, asked, signal: abort.signal };
}

test('the policies auto-approve and auto-deny decide about a permission without a person, and the decision is recorded', async () => {
  for (const [policy, decision] of [
    ['auto-approve', 'approve'],
    ['auto-deny', 'deny'],
  ] as const) {
    const { approvals, events, signal } = open();
    approvals.begin({ policy }, undefined);
    approvals.startTurn('s1');
    expect(await approvals.ask(permission(), signal)).toEqual({ decision, by: 'policy' });
    expect(events).toEqual([
      expect.objectContaining({ type: 'decided', step_id: 's1', action_id: 'a1', decision, by: 'policy' }),
    ]);
  }
});

test('the policy ask asks a person, and the agent continues only after the service has stored the answer', async () => {
  let stored = () => {};
  const flushed = new Promise<void>((resolve) => {
    stored = resolve;
  });
  const { approvals, events, types, asked, signal } = open(() => flushed);
  approvals.begin({ policy: 'ask' }, undefined);
  let verdict: unknown;
  const asking = approvals.ask(permission('rm x'), signal).then((given) => {
    verdict = given;
  });
  const id = await asked();
  expect(events[0]).toMatchObject({
    type: 'blocked',
    request: { kind: 'permission', title: 'rm x', action: action('rm x') },
  });
  expect(approvals.answer(followUp(undefined)), 'an earlier follow-up is no answer').toBe(false);
  expect(approvals.answer(followUp('another'))).toBe(false);
  expect(approvals.answer(followUp(id, { decision: 'approve', message: 'go' }))).toBe(true);
  await new Promise(setImmediate);
  expect(verdict, 'not before the service has it').toBeUndefined();
  stored();
  await asking;
  expect(verdict).toEqual({ decision: 'approve', by: 'person', message: 'go' });
  expect(types()).toEqual(['blocked', 'follow_up_taken', 'decided']);
  expect(approvals.answer(followUp(id, { decision: 'deny' })), 'one answer each').toBe(false);
});

test('the policy ask asks a person about several requests one after another', async () => {
  const { approvals, types, asked, signal } = open();
  approvals.begin({ policy: 'ask' }, undefined);
  const both = [approvals.ask(permission('one'), signal), approvals.ask(permission('two'), signal)];
  const first = await asked();
  for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate);
  expect(types()).toEqual(['blocked']);
  approvals.answer(followUp(first, { decision: 'approve' }));
  const second = await asked();
  expect(second).not.toBe(first);
  approvals.answer(followUp(second, { decision: 'deny' }));
  expect((await Promise.all(both)).map(({ decision }) => decision)).toEqual(['approve', 'deny']);
});

test('if the harness accepts no message as an answer, the message of a person denies the request and becomes the next turn', async () => {
  const { approvals, types, asked, signal } = open();
  approvals.begin({ policy: 'ask' }, undefined);
  const asking = approvals.ask({ ...permission(), messageIsTurn: true }, signal);
  const words = followUp(await asked(), { message: 'rather list it' });
  expect(approvals.answer(words)).toBe(false);
  expect((await asking).decision).toBe('deny');
  expect(types(), 'it is not taken yet').toEqual(['blocked', 'decided']);
  expect(approvals.turnMessage(words)).toBe('rather list it');
});

test('an abort of the turn ends the wait for a person, and the harness gets an answer that arrives later as text', async () => {
  const { approvals, abort, asked, signal, types } = open();
  approvals.begin({ policy: 'ask' }, undefined);
  const asking = approvals.ask(permission('make it'), signal);
  const id = await asked();
  abort.abort(new Error('the wait is over'));
  await expect(asking).rejects.toThrow('the wait is over');
  const late = followUp(id, { decision: 'approve' });
  expect(approvals.answer(late)).toBe(false);
  expect(approvals.turnMessage(late)).toMatch(/permission to use shell: make it.*\n.*approved it/);
  expect((await approvals.ask(permission('make it'), new AbortController().signal)).decision).toBe('approve');
  expect(types()).toEqual(['blocked', 'decided']);
});

test('an approval that a person gave to an earlier sandbox is valid once, and only for the same action', async () => {
  const { approvals, events, asked, signal } = open();
  const earlier = {
    request: {
      request_id: 'q1',
      ...permission('make it'),
      action: { ...action('make it'), fingerprint: fingerprint(action('make it')) },
    },
    follow_up_id: 'f1',
    decision: 'approve' as const,
  };
  approvals.begin({ policy: 'ask' }, earlier);
  approvals.startTurn('s1');
  expect(events).toEqual([
    expect.objectContaining({ type: 'decided', request_id: 'q1', decision: 'approve', by: 'person' }),
  ]);
  const other = approvals.ask(permission('make it all'), signal);
  approvals.answer(followUp(await asked(), { decision: 'deny' }));
  expect((await other).decision).toBe('deny');
  expect(await approvals.ask(permission('make it'), signal)).toEqual({ decision: 'approve', by: 'person' });
  const again = approvals.ask(permission('make it'), signal);
  approvals.answer(followUp(await asked(), { decision: 'deny' }));
  expect((await again).decision).toBe('deny');
});

test('the policy auto-deny denies a question, and the policy auto-approve asks a person', async () => {
  const denying = open();
  denying.approvals.begin({ policy: 'auto-deny' }, undefined);
  expect(await denying.approvals.ask(question, denying.signal)).toEqual({ decision: 'deny', by: 'policy' });
  const { approvals, asked, signal } = open();
  const asking = approvals.ask(question, signal);
  approvals.answer(followUp(await asked(), { message: 'the red one' }));
  expect(await asking).toEqual({ decision: 'answer', by: 'person', message: 'the red one' });
});

test('the fingerprint of an action does not depend on the order of the members of its input', () => {
  const of = (input: object) => fingerprint({ name: 'shell', input });
  expect(of({ a: 1, b: { c: [1, 2], d: null } })).toBe(of({ b: { d: null, c: [1, 2] }, a: 1 }));
  expect(of({ a: [1, 2] })).not.toBe(of({ a: [2, 1] }));
});

test('a request shows a long action whole, and actions that differ only in their last character have different fingerprints', async () => {
  const { approvals, events, asked, signal } = open();
  approvals.begin({ policy: 'ask' }, undefined);
  const command = `${'echo a\n'.repeat(4_000)}rm -rf b`;
  const asking = approvals.ask(permission(command), signal);
  approvals.answer(followUp(await asked(), { decision: 'approve' }));
  expect(await asking).toEqual({ decision: 'approve', by: 'person' });
  expect(events[0]).toMatchObject({ type: 'blocked', request: { action: { input: { command } } } });
  expect(fingerprint(action(`${command}a`))).not.toBe(fingerprint(action(`${command}b`)));
});

const deep = (depth: number): unknown => (depth === 0 ? {} : { in: deep(depth - 1) });

test.each([
  [
    'is too long',
    permission('a'.repeat(70_000)),
    'the input of shell cannot be shown in full to a person: it has 70,014 bytes',
  ],
  [
    'is nested too deeply',
    { ...permission(), action: { ...action(''), input: deep(30) } },
    'it has more than 20 levels of objects',
  ],
  [
    'has no input and a long title',
    { kind: 'permission' as const, title: 'a'.repeat(3_000), action: { ...action(''), input: {} } },
    'the request has 3000 characters',
  ],
])('denies an action that %s instead of asking, and gives the reason', async (_, request, reason) => {
  const { approvals, events, signal } = open();
  approvals.begin({ policy: 'ask' }, undefined);
  const verdict = await approvals.ask(request, signal);
  expect(verdict).toEqual({ decision: 'deny', by: 'policy', message: expect.stringContaining(reason) });
  expect(events).toEqual([expect.objectContaining({ type: 'decided', decision: 'deny', message: verdict.message })]);
  expect(refusalText(verdict)).toBe(`refused: ${verdict.message}`);
});

describe('with rules', () => {
  const rules = [{ command: 'terraform apply' }, { push: '*' }];
  const openWithRules = (policy: 'ask' | 'auto-deny' = 'ask', allowed: AgentRequest[] = []) => {
    const opened = open();
    opened.approvals.begin({ policy, rules, workspace: '/work', allowed }, undefined);
    opened.approvals.startTurn('s1');
    return opened;
  };

  test('the policy ask asks only about actions that match, and the policy auto-deny denies only these', async () => {
    const { approvals, asked, signal } = openWithRules();
    expect(await approvals.ask(permission('ls'), signal)).toEqual({ decision: 'approve', by: 'policy' });
    const asking = approvals.ask(permission('terraform apply'), signal);
    approvals.answer(followUp(await asked(), { decision: 'deny' }));
    expect((await asking).by).toBe('person');
    const denying = openWithRules('auto-deny');
    expect((await denying.approvals.ask(permission('ls'), denying.signal)).decision).toBe('approve');
    expect((await denying.approvals.ask(permission('terraform apply'), denying.signal)).decision).toBe('deny');
  });

  test('an approval for the rest of the run allows the actions that the rule matches, in this sandbox and in the next one', async () => {
    const { approvals, events, asked, signal } = openWithRules();
    const asking = approvals.ask(permission('terraform apply -auto-approve'), signal);
    approvals.answer(followUp(await asked(), { decision: 'approve', allow_for: 'run' }));
    await asking;
    const request = events.flatMap((event) => (event.type === 'blocked' ? [event.request] : []))[0] as AgentRequest;
    expect(request.rest_of_run).toBe('commands with the words terraform apply');
    expect((await approvals.ask(permission('terraform apply'), signal)).decision).toBe('approve');
    const next = openWithRules('ask', [request]);
    expect((await next.approvals.ask(permission('terraform apply'), next.signal)).decision).toBe('approve');
    expect(next.types()).toEqual(['decided']);
  });

  test('without rules, an approval for the rest of the run allows only the same action', async () => {
    const { approvals, asked, signal } = open();
    approvals.begin({ policy: 'ask' }, undefined);
    const asking = approvals.ask(permission('rm a'), signal);
    approvals.answer(followUp(await asked(), { decision: 'approve', allow_for: 'run' }));
    await asking;
    expect((await approvals.ask(permission('rm a'), signal)).decision).toBe('approve');
    const other = approvals.ask(permission('rm b'), signal);
    approvals.answer(followUp(await asked(), { decision: 'deny' }));
    expect((await other).decision).toBe('deny');
  });

  const heldRequest = {
    request_id: 'h1',
    kind: 'permission' as const,
    title: 'git push to acme/site',
    action: { name: 'git push', category: 'command' as const, input: { repository: 'acme/site' } },
  };

  test('with every policy, the agent asks about a held action once, and the question ends with the turn', async () => {
    const { approvals, types, asked, events } = open();
    approvals.begin({ policy: 'auto-approve' }, undefined);
    approvals.askHeld(heldRequest);
    expect(types(), 'no turn is in progress').toEqual([]);
    approvals.startTurn('s1');
    approvals.askHeld(heldRequest);
    approvals.askHeld(heldRequest);
    expect(await asked()).toBe('h1');
    approvals.endTurn();
    await expect.poll(() => approvals.isAwaited(followUp('h1'))).toBe(false);
    expect(events).toHaveLength(1);
    expect(approvals.turnMessage(followUp('h1', { decision: 'approve' }))).toContain('do it now');
  });

  test('a late approval of a held action becomes a turn, because no program waits for it', async () => {
    const { approvals, types, asked } = open();
    approvals.begin({ policy: 'auto-approve' }, undefined);
    approvals.startTurn('s1');
    approvals.askHeld(heldRequest);
    const late = followUp(await asked(), { decision: 'approve', late: true });
    expect(approvals.answer(late)).toBe(false);
    expect(types()).toEqual(['blocked']);
    expect(approvals.turnMessage(late)).toMatch(/git push.*do it now/s);
  });
});
