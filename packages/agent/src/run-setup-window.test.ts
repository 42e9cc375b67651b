import { expect, test } from 'vitest';
import { ended, fake, of, scripted, sh, start } from '../test/run.ts';

const stay = (service: typeof fake) => {
  service.next = 'wait';
};
const broken = (command = 'echo kept > file; exit 5') => ({
  environment: { uid: 'e', config: { setup_commands: [command] } },
});
const say = (position: number, message: string, more: object = {}) =>
  fake.tell({ type: 'follow_up', id: `f${position}`, position, message, debug: true, ...more });

test('after a failed setup, the agent runs the messages of a person in the same sandbox', async () => {
  await start({ ...sh('echo the task'), ...broken() }, { prepare: stay });
  await fake.until(() => fake.finished.length === 1);
  fake.tell({ type: 'follow_up', id: 'f1', position: 1, message: '```sh\necho before\n```' });
  say(2, '```sh\ncat file; exit 3\n```');
  await fake.until(() => fake.finished.length === 2);
  say(3, '```sh\necho further\n```');
  await fake.until(() => fake.finished.length === 3);
  fake.tell({ type: 'leave' });
  await ended();
  expect(
    of('follow_up_taken').map(({ follow_up_id }) => follow_up_id),
    'what was said before is not taken',
  ).toEqual(['f2', 'f3']);
  expect(of('action').map(({ action_id }) => fake.output(action_id).trim())).toEqual(['kept', 'further']);
  expect(of('agent_started'), 'the task has not begun').toEqual([]);
  expect(fake.finished.map(({ turn, success }) => [turn, success])).toEqual([
    [1, false],
    [2, false],
    [3, true],
  ]);
});

test('after a failed setup, an external harness gets the reason of the failure', async () => {
  await start({ ...scripted('echo'), ...broken('exit 5') }, { prepare: stay });
  await fake.until(() => fake.finished.length === 1);
  say(1, 'What is wrong?');
  await fake.until(() => fake.finished.length === 2);
  fake.tell({ type: 'leave' });
  await ended();
  expect(fake.text()).toMatch(/setup of this sandbox failed.*exited with code 5.*What is wrong\?/s);
  expect(of('turn_started')[0]?.prompt).toBe('What is wrong?');
});

test('after a failed setup, the agent can also ask a person', async () => {
  await start({ ...sh('true'), ...broken(), agent_config: { approval_policy: 'ask' } }, { prepare: stay });
  await fake.until(() => fake.finished.length === 1);
  say(1, '```sh\ncat file\n```');
  await fake.until(() => of('blocked').length === 1);
  expect(of('action_output')).toEqual([]);
  const { request_id, title } = of('blocked')[0]?.request ?? {};
  expect(title).toBe('cat file');
  say(2, '', { answers: request_id, decision: 'approve' });
  await fake.until(() => fake.finished.length === 2);
  say(3, '```sh\necho no\n```');
  await fake.until(() => of('blocked').length === 2);
  say(4, 'not now', { answers: of('blocked')[1]?.request.request_id, decision: 'deny' });
  await fake.until(() => fake.finished.length === 3);
  fake.tell({ type: 'leave' });
  await ended();
  expect(of('action').map(({ action_id }) => fake.output(action_id).trim())).toEqual([
    'kept',
    expect.stringContaining('denied by the user'),
  ]);
  expect(of('decided').map(({ decision, by }) => `${decision} by ${by}`)).toEqual([
    'approve by person',
    'deny by person',
  ]);
  expect(fake.finished.map(({ success }) => success)).toEqual([false, true, false]);
});

test('after a failed setup, the agent does not run the action that a person approved for an earlier sandbox', async () => {
  const action = { name: 'shell', category: 'command' as const, input: { command: 'touch it' }, fingerprint: 'f' };
  const request = {
    request_id: 'q1',
    kind: 'permission' as const,
    title: 'touch it',
    action,
    resume: '```sh\ntouch it\n```',
  };
  const decision = { request, follow_up_id: 'f0', decision: 'approve' as const };
  await start({ prompt: '', decision, ...broken() }, { prepare: stay });
  await fake.until(() => fake.finished.length === 1);
  say(1, '```sh\nls\n```');
  await fake.until(() => fake.finished.length === 2);
  fake.tell({ type: 'leave' });
  await ended();
  expect(of('action').map(({ action_id }) => fake.output(action_id).trim())).toEqual(['file']);
  expect(of('decided').filter(({ by }) => by === 'person')).toEqual([]);
});
