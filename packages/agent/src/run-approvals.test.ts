import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, ended, fake, of, scripted, sh, start } from '../test/run.ts';

const ask = { agent_config: { approval_policy: 'ask' as const } };
const asked = async (count = 1) => {
  await fake.until(() => of('blocked').length === count);
  return of('blocked').at(-1)?.request.request_id ?? '';
};
const answer = (position: number, answers: string, decision: 'approve' | 'deny' | undefined, message = '') =>
  fake.tell({ type: 'follow_up', id: `f${position}`, position, message, answers, ...(decision ? { decision } : {}) });

test('the agent runs a command only after the service has stored the approval', async () => {
  await start({ ...sh('touch it'), ...ask });
  const request = await asked();
  expect(existsSync(join(agent.workspace, 'it'))).toBe(false);
  let stored = false;
  fake.fault = ({ path }) => (path.endsWith('/events') && !stored ? { status: 503 } : undefined);
  answer(1, request, 'approve');
  await fake.until(() => fake.requests.filter(({ path }) => path.endsWith('/events')).length > 4);
  expect(existsSync(join(agent.workspace, 'it'))).toBe(false);
  stored = true;
  await ended();
  expect(existsSync(join(agent.workspace, 'it'))).toBe(true);
  expect(of('follow_up_taken')).toMatchObject([{ follow_up_id: 'f1' }]);
  expect(of('decided')).toMatchObject([{ request_id: request, decision: 'approve', by: 'person', follow_up_id: 'f1' }]);
  expect(fake.finished).toMatchObject([{ success: true }]);
});

test('the agent saves the workspace while it waits for the answer of a person', async () => {
  await start({ ...sh('echo made > file', 'touch it'), ...ask, max_workspace_bytes: 10_000_000 });
  answer(1, await asked(), 'approve');
  const second = await asked(2);
  await fake.until(() => (fake.workspaces.at(-1)?.bytes.length ?? 0) > 0);
  expect(fake.finished).toEqual([]);
  const before = fake.workspaces.length;
  answer(2, second, 'approve');
  await ended();
  expect(fake.workspaces.length, 'and what it made after it at the end').toBeGreaterThan(before);
});

test('the agent ends the turn and exits if its sandbox must end during the wait for an answer', async () => {
  await start({ ...sh('touch it'), ...ask });
  await asked();
  fake.tell({ type: 'leave' });
  await ended();
  expect(existsSync(join(agent.workspace, 'it'))).toBe(false);
  expect(of('action_result')).toMatchObject([{ state: 'failed' }]);
  expect(of('turn_finished')).toHaveLength(1);
  expect(of('decided')).toEqual([]);
  expect(fake.shutdowns, 'the end of the turn says it').toEqual([]);
});

test('the agent exits if its sandbox must end, even if the harness does not end the turn', async () => {
  await start({ ...scripted('permission-first'), ...ask });
  await asked();
  fake.tell({ type: 'leave' });
  await ended();
  expect(fake.finished).toHaveLength(1);
});

test('a person can approve an action whose id is long', async () => {
  await start({ ...scripted('permission-long-id'), ...ask });
  answer(1, await asked(), 'approve');
  answer(2, await asked(2), 'approve');
  await ended();
  expect(fake.finished).toMatchObject([{ success: true }]);
  expect(fake.text()).toBe('700: once 3000: once ');
  const ids = of('action').map(({ action_id }) => action_id);
  expect(ids).toEqual(['i'.repeat(700), expect.stringMatching(/^[0-9a-f]{64}$/)]);
  expect(of('blocked').map(({ request }) => request.action?.id)).toEqual(ids);
  expect(of('decided').map(({ action_id }) => action_id)).toEqual(ids);
  expect(of('action_result').map(({ action_id }) => action_id)).toEqual(ids);
});

test('the agent does not wait for an answer if the service refuses the question', async () => {
  await start(
    { ...sh('touch it'), ...ask },
    {
      prepare: (fake) => {
        fake.fault = ({ path, body }) =>
          path.endsWith('/events') && body.includes('"type":"blocked"') ? { status: 400 } : undefined;
      },
    },
  );
  await ended();
  expect(existsSync(join(agent.workspace, 'it'))).toBe(false);
  expect(fake.finished).toMatchObject([
    { success: false, error: { message: expect.stringContaining('could not be put to a person') } },
  ]);
});

test('a cancel ends the wait for an answer', async () => {
  await start({ ...sh('touch it'), ...ask });
  await asked();
  fake.cancel();
  await ended();
  expect(existsSync(join(agent.workspace, 'it'))).toBe(false);
});

test('in a new sandbox, the runbook continues with the approved command and asks about the remaining commands', async () => {
  const request = {
    request_id: 'q1',
    kind: 'permission' as const,
    title: 'touch one',
    action: { name: 'shell', category: 'command' as const, input: { command: 'touch one' } },
    resume: '```sh\ntouch one\n```\n\n```sh\ntouch two\n```',
  };
  await start({ prompt: '', ...ask, decision: { request, follow_up_id: 'f0', decision: 'approve' } });
  // The decision has no fingerprint here, so the agent cannot recognize the same action and asks again.
  answer(1, await asked(), 'approve');
  answer(2, await asked(2), 'deny', 'one is enough');
  await ended();
  expect(existsSync(join(agent.workspace, 'one'))).toBe(true);
  expect(existsSync(join(agent.workspace, 'two'))).toBe(false);
  expect(of('turn_started')[0]?.prompt).toMatch(/permission to use shell: touch one.*approved/s);
  expect(of('decided').map(({ request_id, decision }) => [request_id === 'q1', decision])).toEqual([
    [true, 'approve'],
    [false, 'approve'],
    [false, 'deny'],
  ]);
  expect(fake.finished).toMatchObject([
    { success: false, error: { message: expect.stringContaining('one is enough') } },
  ]);
});

test('in a new sandbox, the runbook does not run the denied command and names it', async () => {
  const request = {
    request_id: 'q1',
    kind: 'permission' as const,
    title: 'touch one',
    resume: '```sh\ntouch one\n```',
  };
  await start({ prompt: '', ...ask, decision: { request, follow_up_id: 'f0', decision: 'deny', message: 'no' } });
  await ended();
  expect(existsSync(join(agent.workspace, 'one'))).toBe(false);
  expect(fake.finished).toMatchObject([
    { success: false, error: { message: expect.stringMatching(/touch one.*denied.*no/) } },
  ]);
});

test('an approval that arrives after the turn was interrupted becomes a text for the harness', async () => {
  await start({ ...scripted('echo'), ...ask });
  fake.next = 'wait';
  await fake.until(() => fake.finished.length === 1);
  fake.tell({ type: 'follow_up', id: 'f1', position: 1, message: '', answers: 'unknown', decision: 'approve' });
  await fake.until(() => fake.finished.length === 2);
  fake.tell({ type: 'leave' });
  await ended();
  expect(of('follow_up_taken')).toMatchObject([{ follow_up_id: 'f1' }]);
});

test.each([
  ['deny', 'the words are the next turn'],
  ['approve', 'there are no words to pass on'],
] as const)('writes the file of an answer for an external harness once: %s, if %s', async (decision, _) => {
  await start({ ...scripted('permission-first'), ...ask });
  fake.next = 'wait';
  fake.files.set('/api/v1/harness-support/files/1', Buffer.from('hi'));
  const attachments = [
    { file_name: 'a.txt', mime_type: 'text/plain', size_bytes: 2, path: '/api/v1/harness-support/files/1' },
  ];
  const answers = await asked();
  fake.tell({ type: 'follow_up', id: 'f1', position: 1, message: 'See this.', answers, decision, attachments });
  if (decision === 'deny') answer(2, await asked(2), 'approve');
  await fake.until(() => fake.finished.length === (decision === 'deny' ? 2 : 1));
  fake.tell({ type: 'leave' });
  await ended();
  expect(readdirSync(join(agent.workspace, 'attachments'))).toEqual(['a.txt']);
  expect(of('turn_started').map(({ prompt }) => prompt)).toEqual(
    decision === 'deny' ? [expect.anything(), 'See this.'] : [expect.anything()],
  );
});
