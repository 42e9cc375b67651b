/**
 * Tests the model loop in a new sandbox. The earlier sandbox had asked a person about a tool call and then ended, and the new sandbox
 * continues this call.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import { describe, expect, test } from 'vitest';
import { openTestLoops, providers, results } from '../../../test/loop.ts';

const { models, workspace, engine } = await openTestLoops();

type Asked = Extract<AgentEventBody, { type: 'blocked' }>['request'];

/** Runs an engine in place of a whole sandbox, and keeps the memory that the engine saves. */
function sandbox(provider: string, memory?: string) {
  const kept: { memory: string; requestId: string | undefined }[] = [];
  const remember = async (said: string, requestId?: string) => void kept.push({ memory: said, requestId });
  const loop = engine(provider, { memory, remember }, 'ask');
  const asked = async (): Promise<Asked> => {
    const open = () => loop.decided.find((event) => event.type === 'blocked')?.request;
    await loop.until(() => open() !== undefined);
    return open() as Asked;
  };
  return { ...loop, kept, asked };
}

/** Runs a sandbox with three calls that ends while a person is asked about the second call. Returns the saved memory. */
async function left(provider: string, second: { name: string; input: Record<string, unknown> }) {
  models.script([
    {
      thinking: 'Let me see.',
      toolCalls: [{ name: 'read', input: { path: '.' } }, second, { name: 'read', input: { path: 'made' } }],
    },
    { text: ['So it is.'] },
  ]);
  const before = sandbox(provider);
  const playing = before.turn('Make it.');
  const request = await before.asked();
  // Use only the memory that was saved before the question, as if the sandbox had been killed with kill -9.
  const memory = before.kept.at(-1);
  expect(memory?.requestId, 'kept before it is asked').toBe(request.request_id);
  before.abort();
  await playing;
  expect(before.kept.at(-1), 'nor does an orderly end forget the call').toEqual(memory);
  return { request, memory: memory?.memory ?? '' };
}

const resultsTold = () => models.requests.at(-1)?.conversation?.toolResults ?? [];
type Decision = Omit<NonNullable<AgentTask['decision']>, 'request' | 'follow_up_id'>;

function goOn(provider: string, was: { request: Asked; memory: string }, decision: Decision) {
  const after = sandbox(provider, was.memory);
  after.approvals.begin({ policy: 'ask' }, { request: was.request, follow_up_id: 'f1', ...decision });
  after.approvals.startTurn('s2');
  return after;
}

const shell = { name: 'shell', input: { command: 'echo made > made; echo done-$((40+2))' } };

describe.each(Object.keys(providers))('with %s', (provider) => {
  test('the loop in the new sandbox runs an approved call before the later calls and does not repeat the earlier calls', async () => {
    const after = goOn(provider, await left(provider, shell), { decision: 'approve', message: 'mind the cat' });
    expect(await after.turn('', [], [], { answer: 'You had asked.' })).toMatchObject({ verdict: { success: true } });
    expect(resultsTold()).toEqual([
      expect.any(String),
      expect.stringMatching(/^done-42\s+\[The user approved this with the message: mind the cat/),
      expect.stringContaining('made'),
    ]);
    expect(results(after.spoken), 'nobody is asked').toEqual(['in_progress', 'completed', 'completed']);
    expect(JSON.stringify(models.requests.at(-1)?.body)).not.toContain('You had asked.');
    expect(after.kept.at(-1)?.requestId, 'the memory is whole again').toBeUndefined();
  });

  test('the loop in the new sandbox does not run a denied call and gives the model the reason of the person', async () => {
    const after = goOn(provider, await left(provider, shell), { decision: 'deny', message: 'never' });
    await after.turn('And then rest.', [], [], { answer: 'You had asked.' });
    expect(existsSync(join(workspace(), 'made'))).toBe(false);
    const { conversation, body } = models.requests.at(-1) ?? {};
    expect(conversation?.prompt).toBe('And then rest.');
    expect(JSON.stringify(body)).toContain('denied by the user, who says: never');
  });
});

const anthropic = 'anthropic';

test('the loop in the new sandbox gives the model the answer of a person as the result of the question', async () => {
  const was = await left(anthropic, { name: 'ask_user', input: { question: 'Which one?' } });
  await goOn(anthropic, was, { message: 'the red one' }).turn('');
  expect(resultsTold()[1]).toBe('the red one');
});

test('the loop in the new sandbox asks again if the person continued the run without a decision', async () => {
  const was = await left(anthropic, shell);
  const after = goOn(anthropic, was, {});
  const playing = after.turn('', [], [], { answer: 'You had asked.' });
  const again = await after.asked();
  expect(again.request_id).not.toBe(was.request.request_id);
  expect(again.action?.fingerprint).toBe(was.request.action?.fingerprint);
  expect(after.kept.at(-1)?.requestId).toBe(again.request_id);
  after.abort();
  expect((await playing).stopReason).toBe('cancelled');
});

test('the loop in the new sandbox uses an approval only once and asks again about the same command', async () => {
  const was = await left(anthropic, shell);
  models.script([{}, { toolCalls: [shell] }, { text: ['no more'] }]);
  const after = goOn(anthropic, was, { decision: 'approve' });
  const playing = after.turn('');
  expect((await after.asked()).action?.input).toEqual(shell.input);
  after.abort();
  await playing;
});

test('the loop in the new sandbox records a call as not done if the decision was about another request', async () => {
  const was = await left(anthropic, shell);
  const other = { ...was, request: { ...was.request, request_id: 'another' } };
  models.script([{ text: ['I see.'] }]);
  await goOn(anthropic, other, { decision: 'approve' }).turn('Go on.', [], [], { answer: 'You had asked. ' });
  expect(existsSync(join(workspace(), 'made'))).toBe(false);
  const requestText = JSON.stringify(models.requests.at(-1)?.body);
  expect(requestText).toContain('not done: the turn ended before the user had answered');
  expect(requestText).toContain('You had asked. Go on.');
});
