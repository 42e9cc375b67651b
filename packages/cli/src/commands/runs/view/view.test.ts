import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import type { LiveEvent } from '@runyard/contract/runs/live-events';
import { describe, expect, test } from 'vitest';
import { coloursFor, noColours } from '../../../terminal/colours.ts';
import { createLiveView } from './view.ts';

const at = '2026-11-21T10:00:00Z';
type Body = AgentEvent extends infer E ? (E extends AgentEvent ? Omit<E, 'seq' | 'occurred_at'> : never) : never;
const agent = (event: Body): LiveEvent => ({
  type: 'conversation',
  event: { ...event, seq: 1, occurred_at: at } as AgentEvent,
});
const state = (name: 'QUEUED' | 'CLAIMED' | 'INPROGRESS' | 'SUCCEEDED'): LiveEvent => ({ type: 'state', state: name });
const ready = (payload: Record<string, unknown>): LiveEvent => ({
  type: 'timeline',
  event: { event_uuid: 'e', run_id: 'r', event_type: 'worker_container_ready', occurred_at: at, payload },
});
const command = (id: string, text: string) =>
  agent({ type: 'action', step_id: 's', action_id: id, category: 'command', name: 'shell', input: { command: text } });
const output = (id: string, text: string) => agent({ type: 'action_output', action_id: id, text });
const result = (id: string, exitCode: number) =>
  agent({
    type: 'action_result',
    action_id: id,
    state: exitCode === 0 ? 'completed' : 'failed',
    exit_code: exitCode,
    duration_ms: 12.4,
  });
const say = (id: string, text: string) =>
  agent({ type: 'text', step_id: 's', message_id: id, role: 'assistant', text });

function draw(...events: LiveEvent[]): string {
  const view = createLiveView(noColours);
  return events.map((event) => view.render(event)).join('');
}

test('the view shows the events of a run in their order', () => {
  expect(
    draw(
      state('QUEUED'),
      state('CLAIMED'),
      ready({ backend: 'bubblewrap', spawn_ms: 14.2 }),
      state('INPROGRESS'),
      command('a', 'echo hello\n'),
      output('a', 'hel'),
      output('a', 'lo\n'),
      result('a', 0),
      say('m', 'All '),
      say('m', 'done.'),
      state('SUCCEEDED'),
    ),
  ).toBe(
    [
      '  queued',
      '  a worker took it',
      '  sandbox ready: bubblewrap in 14 ms',
      '  the agent is at work',
      '$ echo hello',
      '  │ hello',
      '  ✓ exit 0 · 12 ms',
      'All done.',
      '  succeeded',
      '',
    ].join('\n'),
  );
});

describe('the output of a command', () => {
  test('is shown as it arrives, even before a line is complete', () => {
    const view = createLiveView(noColours);
    view.render(command('a', 'make'));
    expect(view.render(output('a', 'compiling'))).toBe('  │ compiling');
    expect(view.render(output('a', ' …\nlink'))).toBe(' …\n  │ link');
    expect(view.render(result('a', 2))).toBe('\n  ✗ exit 2 · 12 ms\n');
  });

  test('never shares a line with the output of another concurrent command', () => {
    expect(
      draw(
        command('a', 'one'),
        command('b', 'two'),
        output('a', 'from a'),
        output('b', 'from b'),
        output('a', 'more\n'),
      ),
    ).toBe('$ one\n$ two\n  │ from a\n  │ from b\n  │ more\n');
  });

  test('is shown without escape sequences, even if a sequence is split over several events', () => {
    const text = draw(
      command('a', 'printf \u001b[2J'),
      output('a', 'x\u001b]0;ow'),
      output('a', 'ned\u0007y\n'),
      say('m', '\u001b[31mred\n'),
    );
    expect(text).toBe('$ printf\n  │ xy\nred\n');
  });

  test('is shown completely again if the result does not begin with the streamed output', () => {
    const done = (text: string) =>
      agent({ type: 'action_result', action_id: 'a', state: 'completed', output: text, duration_ms: 1 });
    expect(draw(command('a', 'x'), output('a', 'one\ntw'), done('one\ntwo\nthree\n'))).toBe(
      '$ x\n  │ one\n  │ two\n  │ three\n  ✓ 1 ms\n',
    );
    expect(draw(command('a', 'x'), output('a', 'one\ntw'), done('other\n'))).toBe(
      '$ x\n  │ one\n  │ tw…\n  │ other\n  ✓ 1 ms\n',
    );
  });

  test('is shown with only the first and the last lines if the output is long and was not streamed', () => {
    const lines = Array.from({ length: 1000 }, (_, index) => `line ${index}`);
    const done = agent({ type: 'action_result', action_id: 'a', state: 'completed', output: lines.join('\n') });
    const text = draw(command('a', 'x'), done);
    expect(text).toContain('  │ line 133\n  │ … 800 lines (7.0 KB) left out …\n  │ line 934\n');
    expect(text).toContain('  │ line 999\n');
  });

  test('is shown once, with the size of the whole output, if the agent reported only a part of the output', () => {
    const done = agent({
      type: 'action_result',
      action_id: 'a',
      state: 'completed',
      output: 'line\n',
      output_bytes: 209_715_200,
    });
    expect(draw(command('a', 'x'), done)).toBe('$ x\n  │ line\n  ✓ 200 MB of output\n');
    expect(draw(command('a', 'x'), output('a', 'line\n'), done)).toBe('$ x\n  │ line\n  ✓ 200 MB of output\n');
  });
});

describe('an action that is reported several times', () => {
  const tool = (input: object) =>
    agent({ type: 'action', step_id: 's', action_id: 'a', category: 'files', name: 'Write', input });

  test('is shown once, and its output too', () => {
    const described = agent({
      ...{ type: 'action', step_id: 's', action_id: 'a', category: 'command', name: 'Bash' },
      input: { command: 'make', description: 'Builds' },
    });
    expect(draw(command('a', 'make'), described, output('a', 'built\n'), described, result('a', 0))).toBe(
      '$ make\n  │ built\n  ✓ exit 0 · 12 ms\n',
    );
    const diff = '--- a.txt\n+++ a.txt\n@@ -0,0 +1 @@\n+one\n';
    const done = agent({ type: 'action_result', action_id: 'a', state: 'completed', output: diff });
    const file = { file_path: 'a.txt' };
    const events = [
      tool(file),
      tool({ ...file, content: 'one' }),
      output('a', diff),
      tool({ ...file, content: 'one\n' }),
    ];
    expect(draw(...events, done)).toBe(`● Write a.txt\n${diff.replaceAll(/^(?=.)/gm, '  │ ')}  ✓\n`);
  });

  test('is shown again before its output or its question if the shown input changed, and not before its command is known', () => {
    expect(draw(command('a', 'make'), command('a', 'make all'), output('a', 'built\n'))).toBe(
      '$ make\n$ make all\n  │ built\n',
    );
    const unknown = agent({
      ...{ type: 'action', step_id: 's', action_id: 'a', category: 'command', name: 'bash', input: { cwd: '/w' } },
    });
    expect(draw(unknown, command('a', 'make'), result('a', 0))).toBe('$ make\n  ✓ exit 0 · 12 ms\n');
    expect(draw(unknown, result('a', 1))).toBe('● bash {"cwd":"/w"}\n  ✗ exit 1 · 12 ms\n');
  });
});

test('a command of several lines is shown whole up to a limit', () => {
  expect(draw(command('a', 'one\ntwo\n'))).toBe('$ one\n  two\n');
  const long = draw(command('a', Array.from({ length: 40 }, (_, index) => `line ${index}`).join('\n')));
  expect(long).toContain('  line 19\n  … 10 lines (80 B) left out …\n  line 30\n');
  expect(long.endsWith('  line 39\n')).toBe(true);
});

test('the view shows the end of the output of a failed setup step, and shows no step twice', () => {
  const step = agent({
    type: 'setup_step_finished',
    step_id: 'x',
    kind: 'setup_command',
    name: 'npm ci',
    duration_ms: 2300,
    exit_code: 1,
    output_tail: 'no lockfile\n',
  });
  const timelineEvent: LiveEvent = {
    type: 'timeline',
    event: {
      event_uuid: 'e',
      run_id: 'r',
      event_type: 'setup_step_finished',
      occurred_at: at,
      payload: { step_id: 'x', name: 'npm ci', duration_ms: 2300, exit_code: 1 },
    },
  };
  expect(draw(step, timelineEvent)).toBe('  ✗ setup npm ci  exit 1 · 2.3 s\n  │ no lockfile\n');
});

test('the view shows the setup step that starts an external program as the start of a harness', () => {
  const step = {
    type: 'setup_step_finished',
    step_id: 'x',
    kind: 'harness',
    name: 'command',
    duration_ms: 25,
  } as const;
  expect(draw(agent(step))).toBe('  ✓ harness command  25 ms\n');
});

test('the view warns about a run without isolation', () => {
  expect(draw(ready({ backend: 'none', spawn_ms: 3 }))).toContain('no isolation');
});

test('the view shows the tool and the main argument of a tool call that is not a command', () => {
  const edit = agent({
    type: 'action',
    step_id: 's',
    action_id: 'a',
    category: 'files',
    name: 'edit',
    input: { path: 'src/a.ts' },
  });
  expect(draw(edit)).toBe('● edit src/a.ts\n');
});

test('the view shows a repeated state only once', () => {
  expect(draw(state('QUEUED'), state('QUEUED'))).toBe('  queued\n');
});

test('coloursFor returns colours only for a terminal, and not if NO_COLOR is set', () => {
  expect(coloursFor({ isTTY: true }, {}).red('x')).toBe('\u001b[31mx\u001b[39m');
  expect(coloursFor({ isTTY: true }, { NO_COLOR: '1' }).red('x')).toBe('x');
  expect(coloursFor({}, {}).red('x')).toBe('x');
});

describe('a request of a run', () => {
  const action = { id: 'a', name: 'shell', category: 'command' as const, input: { command: 'rm x' } };
  const blocked = (request: object) =>
    agent({ type: 'blocked', step_id: 's', request: { request_id: 'q', ...request } as never });
  const decided = (decision: 'approve' | 'deny' | 'answer', by: 'person' | 'policy', message?: string) =>
    agent({
      type: 'decided',
      step_id: 's',
      request_id: 'q',
      kind: 'permission',
      title: 'rm x',
      decision,
      by,
      ...(message ? { message } : {}),
    });

  test('is shown with its outcome, and without a command that is already shown above', () => {
    expect(
      draw(
        command('a', 'rm x'),
        blocked({ kind: 'permission', title: 'rm x', action }),
        decided('deny', 'person', 'not \u001b[31mthat'),
        blocked({ kind: 'question', title: 'Which?\nThink.', options: ['a', 'b'] }),
        decided('answer', 'person', 'b'),
        decided('approve', 'policy'),
        decided('deny', 'policy'),
      ),
    ).toBe(
      [
        '$ rm x',
        '? asks for permission to use shell',
        '  ✗ denied: not that',
        '? asks:',
        '    Which?',
        '    Think.',
        '    - a',
        '    - b',
        '  ✓ answered: b',
        '  refused by policy: rm x',
        '',
      ].join('\n'),
    );
  });
});

test('the view shows the result for each branch of a push, without control characters', () => {
  const branches = [
    { branch: 'a', to: '1', result: 'pushed' },
    { branch: 'main\u001b[2J', result: 'refused', reason: 'main is protected' },
  ];
  const payload = { repository: 'acme/site', branches };
  const event = { event_uuid: 'e', run_id: 'r', event_type: 'git_push' as const, occurred_at: at, payload };
  expect(draw({ type: 'timeline', event })).toBe('  push to acme/site: a pushed, main refused (main is protected)\n');
});

test('denied connections and hosts that the worker does not allow are shown without control characters', () => {
  const denied = (payload: Record<string, unknown>): LiveEvent => ({
    type: 'timeline',
    event: { event_uuid: 'e', run_id: 'r', event_type: 'connection_denied', occurred_at: at, payload },
  });
  expect(
    draw(
      ready({ backend: 'bubblewrap', network: { refused_hosts: ['a.example', 'b.example'] } }),
      denied({ host: 'evil\u001b[2J.example', port: 443, message: 'not allowed' }),
      denied({ total: 5000, connections: [] }),
    ),
  ).toBe(
    [
      '  sandbox ready: bubblewrap',
      '  not allowed by the worker: a.example, b.example',
      '  connection denied evil.example:443: not allowed',
      '  connection denied 5000 times in total',
      '',
    ].join('\n'),
  );
});
