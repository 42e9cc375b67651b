import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import { expect, test } from 'vitest';
import { trackActions } from './actions.ts';

function tracked() {
  const events: AgentEventBody[] = [];
  let clock = 0;
  const actions = trackActions({
    emit: (event) => events.push(event),
    stepId: () => 's1',
    mcpServers: [],
    now: () => clock,
  });
  return {
    ...actions,
    tell: (status: string, more: object = {}) =>
      actions.upsert({
        toolCallId: 't1',
        title: 'make',
        kind: 'execute',
        status,
        rawInput: { command: 'make' },
        ...more,
      }),
    pass: (ms: number) => {
      clock += ms;
    },
    output: () => events.flatMap((event) => (event.type === 'action_output' ? [event.text] : [])).join(''),
    result: () => events.findLast((event) => event.type === 'action_result'),
    durations: () => events.flatMap((event) => (event.type === 'action_result' ? [event.duration_ms] : [])),
  };
}

test('the duration of an approved call begins with the approval', () => {
  const { tell, pass, hold, release, durations } = tracked();
  tell('pending');
  pass(50);
  hold('t1');
  pass(3_600_000);
  release('t1', 'approve');
  pass(70);
  tell('completed');
  expect(durations()).toEqual([70]);
});

test('the duration of a running call does not include the time in which the call waits for a person', () => {
  const { tell, pass, hold, release, durations } = tracked();
  tell('in_progress');
  pass(20);
  for (const asked of [1, 2]) {
    hold('t1');
    pass(1_000 * asked);
    release('t1', 'approve');
    pass(30);
  }
  tell('failed');
  expect(durations()).toEqual([80]);
});

test('the duration of a call does not include the time for which the harness reports that the call waits for a person', () => {
  const { tell, pass, durations } = tracked();
  tell('in_progress');
  pass(5);
  const waits = (waits: boolean) => ({ _meta: { runyard: { waits } } });
  tell('in_progress', waits(true));
  pass(3_600_000);
  tell('in_progress', waits(false));
  pass(7);
  tell('completed');
  expect(durations()).toEqual([12]);
});

test('the duration of a pending call begins with the update that reports its start', () => {
  const { tell, pass, durations } = tracked();
  tell('pending');
  pass(5_000);
  tell('in_progress');
  pass(40);
  tell('completed');
  expect(durations()).toEqual([40]);
});

test('if no update reports the start of a call, the duration begins with the first update', () => {
  const { tell, pass, durations } = tracked();
  tell('pending');
  pass(40);
  tell('completed');
  expect(durations()).toEqual([40]);
});

test('if the harness reports a duration, the action has this duration and not the duration that the agent measured', () => {
  const { tell, pass, durations } = tracked();
  tell('in_progress');
  pass(90);
  tell('completed', { rawOutput: { exit_code: 0, duration_ms: 57.6 } });
  expect(durations()).toEqual([58]);
});

test('if the harness reports an impossible duration, the action has the duration that the agent measured', () => {
  for (const duration_ms of [-1, '57', Number.POSITIVE_INFINITY]) {
    const { tell, pass, durations } = tracked();
    tell('in_progress');
    pass(90);
    tell('completed', { rawOutput: { duration_ms } });
    expect(durations()).toEqual([90]);
  }
});

test('a call that was denied, or that ended while it waited for a person, has no duration', () => {
  const asked = tracked();
  asked.tell('pending');
  asked.hold('t1');
  asked.pass(500);
  asked.release('t1', 'deny');
  asked.tell('failed');
  const said = tracked();
  said.tell('pending');
  said.pass(500);
  said.tell('failed', { _meta: { runyard: { denied: true } } });
  const ended = tracked();
  ended.tell('pending');
  ended.hold('t1');
  ended.pass(500);
  ended.settle('interrupted');
  expect([asked, said, ended].map(({ durations }) => durations())).toEqual([[undefined], [undefined], [undefined]]);
});

test.each([
  ['terminal output', (text: string) => ({ _meta: { terminal_output_delta: { data: text } } })],
  [
    'content',
    (_: string, whole: string) => ({ content: [{ type: 'content', content: { type: 'text', text: whole } }] }),
  ],
])('keeps head and tail of a long output that a harness sends as %s', (_, update) => {
  const { tell, output, result } = tracked();
  let whole = '';
  for (let number = 1; number <= 20_000; number += 1) {
    const line = `${number}\n`;
    whole += line;
    if (number % 500 === 0) tell('in_progress', update(whole.slice(-500 * line.length), whole));
  }
  tell('completed');
  expect(output()).toMatch(/^1\n2\n3\n/);
  expect(output()).toMatch(/\n… [\d,]+ lines \([\d.]+ [KM]B\) left out …\n(\d+\n)+20000\n$/);
  expect(output().length).toBeLessThan(64 * 1024);
  expect(result()).not.toHaveProperty('output');
});
