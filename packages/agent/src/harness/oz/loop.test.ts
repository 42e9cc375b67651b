import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SessionUpdate } from '@agentclientprotocol/sdk';
import type { AgentEventBody, AgentModel } from '@runyard/contract/agent-protocol';
import type { ApprovalPolicy } from '@runyard/contract/approvals';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type FakeModels, fakeModelKeys, startFakeModels } from '../../../../../test/fakes/models.ts';
import { createApprovals } from '../../approvals/approvals.ts';
import { connectToService } from '../../service/connection.ts';
import { testFolder } from '../../test-agent.ts';
import type { TurnImage } from './conversation-images.ts';
import { type LoopOptions, modelEngine } from './loop.ts';
import type { TurnVoice } from './session.ts';

let models: FakeModels;
let workspace: string;
beforeAll(async () => {
  models = await startFakeModels();
});
afterAll(() => models.close());
beforeEach(() => {
  workspace = testFolder();
});

const providers: Record<string, { model: AgentModel; key: string }> = {
  anthropic: { model: agentModel('anthropic', 'claude-opus-5-5', '/v1'), key: fakeModelKeys.anthropic },
  'openai responses': { model: agentModel('openai-responses', 'gpt-5.5', '/v1'), key: fakeModelKeys.openai },
  google: { model: agentModel('google', 'gemini-3.8-flash', '/v1beta'), key: fakeModelKeys.google },
  'openai-compatible': { model: agentModel('openai-compatible', 'fake-local', '/local/v1'), key: fakeModelKeys.local },
};

function agentModel(protocol: AgentModel['protocol'], provider_model: string, gateway_path: string): AgentModel {
  return { id: `test/${provider_model}`, protocol, provider_model, gateway_path, vision_supported: false };
}

/** The engine against the fake provider itself: its key stands for the run token that the gateway would exchange. */
function engine(provider = 'anthropic', options: Partial<LoopOptions> = {}, policy?: ApprovalPolicy) {
  const found = providers[provider];
  if (found === undefined) throw new Error(`no provider ${provider}`);
  const spoken: SessionUpdate[] = [];
  const texts: string[] = [];
  const thoughts: string[] = [];
  const waiters: (() => void)[] = [];
  const heard = () => {
    for (const waiter of waiters) waiter();
  };
  const voice: TurnVoice = {
    say: async (text) => {
      texts.push(text);
      heard();
    },
    think: async (text) => {
      thoughts.push(text);
      heard();
    },
    update: async (update) => {
      spoken.push(update);
      heard();
    },
  };
  const decided: AgentEventBody[] = [];
  const approvals = createApprovals({
    emit: (event) => {
      decided.push(event);
      heard();
    },
    flush: async () => {},
  });
  approvals.begin(policy, undefined);
  const play = modelEngine({
    approvals,
    model: found.model,
    workspace,
    env: { PATH: process.env.PATH },
    backpressure: () => undefined,
    connection: connectToService({ serverRoot: models.url, token: found.key }),
    reportArtifact: async () => ({ ok: true, artifact_uid: 'artifact-1' }),
    handoff: async (paths) => ({ ok: true, files: [...paths] }),
    retry: { tries: 3, firstMs: 1, maxMs: 5 },
    stallTimeoutMs: 10_000,
    ...options,
  });
  const until = async (condition: () => boolean) => {
    while (!condition()) await new Promise<void>((resolve) => waiters.push(resolve));
  };
  let stop = new AbortController();
  const turn = (prompt: string, images: TurnImage[] = [], files: string[] = []) => {
    stop = new AbortController();
    return play({ prompt, files, images, voice, signal: stop.signal });
  };
  return { turn, approvals, decided, spoken, texts, thoughts, abort: () => stop.abort(), until };
}

const results = (spoken: SessionUpdate[]) =>
  spoken.flatMap((update) => (update.sessionUpdate === 'tool_call_update' && update.status ? [update.status] : []));

describe.each(Object.keys(providers))('the loop with %s', (provider) => {
  test('streams text, runs a command, gives its result back and ends', async () => {
    models.script([
      {
        thinking: 'Let me look.',
        text: ['I will ', 'look.'],
        toolCalls: [{ name: 'shell', input: { command: 'echo found > it; cat it' } }],
      },
      { text: ['It is ', 'found.'] },
    ]);
    const before = models.requests.length;
    const { turn, texts, spoken } = engine(provider);
    expect(await turn('Where is it?')).toEqual({ stopReason: 'end_turn', verdict: { success: true, message: '' } });
    expect(texts).toEqual(['I will ', 'look.', 'It is ', 'found.']);
    expect(readFileSync(join(workspace, 'it'), 'utf8')).toBe('found\n');
    expect(results(spoken)).toEqual(['completed']);
    const [first, second] = models.requests.slice(before);
    expect(first?.conversation?.toolNames).toEqual([
      'shell',
      'read',
      'write',
      'edit',
      'search',
      'report_artifact',
      'handoff',
      'ask_user',
    ]);
    expect(first?.conversation?.prompt).toBe('Where is it?');
    expect(second?.conversation?.toolResults.join()).toContain('found');
    if (provider === 'openai responses') expect(second?.body.store).toBe(false);
  });

  test('sends the bytes of an image with the prompt, also when the memory goes on in another engine', async () => {
    models.script([{ text: ['A dot.'] }, { text: ['Still.'] }]);
    const data = Buffer.from('\x89PNG\r\n\x1a\nbytes of an image', 'latin1').toString('base64');
    let memory = '';
    const remember = async (said: string) => {
      memory = said;
    };
    const first = engine(provider, { remember });
    await first.turn('What is it?', [{ mimeType: 'image/png', data }], ['/w/attachments/a.png (image/png, 30 bytes)']);
    const asked = JSON.stringify(models.requests.at(-1)?.body);
    expect(asked).toContain(data);
    expect(asked).toContain('image/png');
    expect(models.requests.at(-1)?.conversation?.prompt).toContain('/w/attachments/a.png');
    await engine(provider, { memory }).turn('And now?');
    expect(JSON.stringify(models.requests.at(-1)?.body)).toContain(data);
  });

  test('asks again after a cut in the middle of the stream', async () => {
    models.script([{ text: ['one ', 'two ', 'three'] }]);
    models.misbehave({ kind: 'cut', afterPieces: 2 });
    const { turn, texts, thoughts } = engine(provider);
    expect((await turn('Count.')).verdict).toEqual({ success: true, message: '' });
    expect(texts.join('')).toMatch(/one two three$/);
    expect(thoughts.join('')).toContain('trying again');
  });

  test('gives up on 500 with a message that names the model, the status and what to do', async () => {
    models.misbehave({ kind: 'status', status: 500, message: 'melted' }, 3);
    const { verdict } = await engine(provider).turn('Hi.');
    expect(verdict).toMatchObject({ success: false, code: 'internal_error' });
    expect(verdict.message).toMatch(/answered 500 after 3 tries: melted.*run again later/);
  });

  test('does not repeat a request that the provider refuses', async () => {
    models.misbehave({ kind: 'status', status: 403, message: 'not yours' });
    const before = models.requests.length;
    const { verdict } = await engine(provider).turn('Hi.');
    expect(verdict).toMatchObject({
      success: false,
      code: 'not_authorized',
      message: expect.stringContaining('not yours'),
    });
    expect(models.requests.length - before).toBe(1);
  });

  test('asks again after an error event in a stream that began well', async () => {
    models.script([{ text: ['fine'] }]);
    models.misbehave({ kind: 'error_event', afterPieces: 2 });
    const { turn, texts } = engine(provider);
    expect((await turn('Hi.')).verdict.success).toBe(true);
    expect(texts.at(-1)).toBe('fine');
  });
});

describe('the loop asks a person', () => {
  const call = (name: string, input: Record<string, unknown>) => ({ toolCalls: [{ name, input }] });
  const told = () => models.requests.at(-1)?.conversation?.toolResults;
  const open = (decided: AgentEventBody[]) => {
    const last = decided.at(-1);
    return last?.type === 'blocked' ? last.request.request_id : undefined;
  };
  const followUp = (answers: string | undefined, decision: 'approve' | 'deny' | undefined, message = '') => ({
    type: 'follow_up' as const,
    id: 'f1',
    position: 1,
    message,
    ...(answers ? { answers } : {}),
    ...(decision ? { decision } : {}),
  });

  test('before a command or a change of a file, not before it reads', async () => {
    models.script([
      {
        toolCalls: [
          { name: 'read', input: { path: '.' } },
          { name: 'shell', input: { command: 'touch allowed' } },
          { name: 'write', input: { path: 'denied', content: 'x' } },
        ],
      },
      { text: ['ok'] },
    ]);
    const { turn, approvals, decided, spoken, until } = engine('anthropic', {}, 'ask');
    const playing = turn('Hi.');
    await until(() => open(decided) !== undefined);
    expect(existsSync(join(workspace, 'allowed'))).toBe(false);
    approvals.answer(followUp(open(decided), 'approve'));
    await until(() => decided.filter(({ type }) => type === 'blocked').length === 2);
    approvals.answer(followUp(open(decided), 'deny', 'write nothing'));
    expect((await playing).verdict.success).toBe(true);
    expect(existsSync(join(workspace, 'allowed'))).toBe(true);
    expect(existsSync(join(workspace, 'denied'))).toBe(false);
    expect(results(spoken)).toEqual(['completed', 'in_progress', 'completed', 'failed']);
    expect(told()?.[2]).toContain('denied by the user, who says: write nothing');
  });

  test('by ask_user, whose result is what they say', async () => {
    models.script([
      call('ask_user', { question: 'Which?' }),
      call('ask_user', { question: 'Sure?' }),
      call('ask_user', { question: 'Really?' }),
      { text: ['ok'] },
    ]);
    const { turn, approvals, decided, until } = engine();
    const playing = turn('Hi.');
    const heard: unknown[] = [];
    for (const [decision, message] of [
      [undefined, 'the red one'],
      ['approve', ''],
      ['deny', 'look again'],
    ] as const) {
      await until(() => open(decided) !== undefined);
      heard.push(told());
      approvals.answer(followUp(open(decided), decision, message));
    }
    await playing;
    expect([...heard.slice(1), told()]).toEqual([['the red one'], ['yes'], ['no: look again']]);
  });

  test('unless the policy refuses at once, and says so to the model', async () => {
    models.script([
      {
        toolCalls: [
          { name: 'shell', input: { command: 'touch x' } },
          { name: 'ask_user', input: { question: 'May I?' } },
        ],
      },
      { text: ['ok'] },
    ]);
    const { turn, decided } = engine('anthropic', {}, 'auto-deny');
    await turn('Hi.');
    expect(existsSync(join(workspace, 'x'))).toBe(false);
    expect(told()?.[0]).toContain('auto-deny');
    expect(told()?.[1]).toContain('decide yourself');
    expect(decided.map((event) => event.type === 'decided' && event.by)).toEqual(['policy', 'policy']);
  });

  test('and where the wait is cut short, the history says that nothing was done', async () => {
    models.script([call('shell', { command: 'touch x' }), { text: ['go on'] }]);
    let memory = '';
    const remember = async (kept: string) => {
      memory = kept;
    };
    const { turn, decided, abort, until } = engine('anthropic', { remember }, 'ask');
    const playing = turn('Hi.');
    await until(() => open(decided) !== undefined);
    abort();
    expect((await playing).stopReason).toBe('cancelled');
    expect(existsSync(join(workspace, 'x'))).toBe(false);
    expect(memory).toContain('not done: the sandbox went away before the user had answered');
  });
});

describe('the loop', () => {
  test('waits as long as Retry-After says and then goes on', async () => {
    models.script([{ text: ['done'] }]);
    models.misbehave({ kind: 'status', status: 429, retryAfterSeconds: 1 });
    const { turn } = engine();
    const started = performance.now();
    expect((await turn('Hi.')).verdict.success).toBe(true);
    expect(performance.now() - started).toBeGreaterThan(990);
  });

  test('calls a used-up rate limit resource_unavailable, which the platform retries', async () => {
    models.misbehave({ kind: 'status', status: 429 }, 3);
    expect((await engine().turn('Hi.')).verdict).toMatchObject({ success: false, code: 'resource_unavailable' });
  });

  test('does not let the platform repeat a run that has already acted', async () => {
    models.script([
      { toolCalls: [{ name: 'shell', input: { command: 'true' } }] },
      { text: ['never'], misbehaviour: { kind: 'status', status: 429 } },
    ]);
    expect((await engine().turn('Hi.')).verdict).toMatchObject({ success: false, code: 'agent_process_failed' });
  });

  test('takes a silent model for broken after the stall timeout', async () => {
    models.misbehave({ kind: 'silent' }, 3);
    const { verdict } = await engine('anthropic', { stallTimeoutMs: 50 }).turn('Hi.');
    expect(verdict).toMatchObject({
      success: false,
      code: 'internal_error',
      message: expect.stringContaining('no answer for 50 ms'),
    });
  });

  test('lets a slow stream take longer than the stall timeout', async () => {
    models.script([{ text: ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'] }]);
    models.misbehave({ kind: 'slow', delayMs: 60 });
    const { turn, texts } = engine('anthropic', { stallTimeoutMs: 300 });
    expect((await turn('Hi.')).verdict.success).toBe(true);
    expect(texts.join('')).toBe('abcdefgh');
  });

  test('tells the model of malformed input and unknown tools and goes on', async () => {
    models.script([
      {
        toolCalls: [
          { name: 'shell', input: { command: 3 } },
          { name: 'teleport', input: {} },
          { name: 'shell', input: { command: 'echo ok' } },
        ],
      },
      { text: ['understood'] },
    ]);
    const { turn, texts, spoken } = engine();
    expect((await turn('Hi.')).verdict.success).toBe(true);
    expect(results(spoken)).toEqual(['failed', 'failed', 'completed']);
    const told = models.requests.at(-1)?.conversation?.toolResults ?? [];
    expect(told).toHaveLength(3);
    expect(told[0]).toContain('Invalid input');
    expect(told[1]).toContain('teleport');
    expect(told[2]).toContain('ok');
    expect(texts).toEqual(['understood']);
  });

  test('tells the model the exit code of a failed command', async () => {
    models.script([{ toolCalls: [{ name: 'shell', input: { command: 'echo no; exit 7' } }] }, { text: ['I see'] }]);
    const { turn, spoken } = engine();
    await turn('Hi.');
    expect(results(spoken)).toEqual(['failed']);
    expect(models.requests.at(-1)?.conversation?.toolResults.join()).toContain('no\n\n[exit code 7]');
  });

  test('writes, edits, reads and searches files', async () => {
    writeFileSync(join(workspace, 'old.txt'), 'one\ntwo\ntwo\n');
    models.script([
      {
        toolCalls: [
          { name: 'write', input: { path: 'deep/new.txt', content: 'hello needle\n' } },
          { name: 'edit', input: { path: 'old.txt', old_text: 'two', new_text: '2' } },
          { name: 'edit', input: { path: 'old.txt', old_text: 'one', new_text: '1' } },
          { name: 'read', input: { path: 'old.txt', first_line: 1, lines: 1 } },
          { name: 'search', input: { pattern: 'need.e' } },
          { name: 'search', input: { pattern: 'nowhere' } },
          { name: 'read', input: { path: '.' } },
          { name: 'read', input: { path: 'absent' } },
          { name: 'report_artifact', input: { type: 'FILE', path: 'old.txt' } },
        ],
      },
      { text: ['ok'] },
    ]);
    const { turn, spoken } = engine();
    await turn('Hi.');
    const told = models.requests.at(-1)?.conversation?.toolResults ?? [];
    expect(told[0]).toContain('13 bytes');
    expect(told[1]).toContain('occurs 2 times');
    expect(told[2]).toContain('replaced 1 occurrence');
    expect(told[3]).toBe('1\t1\n[2 more lines]');
    expect(told[4]).toContain('deep/new.txt:1:hello needle');
    expect(told[5]).toBe('[no match]');
    expect(told[6]).toBe('deep/\nold.txt');
    expect(told[7]).toContain('ENOENT');
    expect(told[8]).toContain('artifact-1');
    expect(results(spoken)).toEqual([
      'completed',
      'failed',
      'completed',
      'completed',
      'completed',
      'completed',
      'completed',
      'failed',
      'completed',
    ]);
  });

  test('bounds what a command may put into the context', async () => {
    models.script([
      { toolCalls: [{ name: 'shell', input: { command: 'head -c 5000000 /dev/zero | tr "\\0" x' } }] },
      { text: ['big'] },
    ]);
    await engine().turn('Hi.');
    const [told = ''] = models.requests.at(-1)?.conversation?.toolResults ?? [];
    expect(told.length).toBeLessThan(40_000);
    expect(told).toContain('bytes left out');
  });

  test('stops a model call at once when it is cancelled', async () => {
    models.script([{ text: ['a', 'b', 'c', 'd', 'e'] }]);
    models.misbehave({ kind: 'hold', afterPieces: 4 });
    const { turn, texts, abort, until } = engine();
    const playing = turn('Hi.');
    await until(() => texts.length > 0);
    const request = models.requests.at(-1);
    abort();
    expect((await playing).stopReason).toBe('cancelled');
    expect(await request?.end).toBe('client_gone');
  });

  test('stops a command at once when it is cancelled, and the history says that it was interrupted', async () => {
    models.script([
      { toolCalls: [{ name: 'shell', input: { command: 'echo begun; sleep 600; touch late' } }] },
      { text: ['go on'] },
    ]);
    const { turn, spoken, abort, until } = engine();
    const playing = turn('Hi.');
    await until(() => spoken.length > 1);
    abort();
    expect((await playing).stopReason).toBe('cancelled');
    expect(existsSync(join(workspace, 'late'))).toBe(false);
    expect((await turn('Go on.')).verdict.success).toBe(true);
    expect(models.requests.at(-1)?.conversation).toMatchObject({ turn: 1, prompt: 'Go on.' });
    expect(JSON.stringify(models.requests.at(-1)?.body)).toContain('interrupted: the run was stopped');
  });

  test('stops at the limit of model requests', async () => {
    models.script(() => ({ toolCalls: [{ name: 'shell', input: { command: 'true' } }] }));
    expect(await engine('anthropic', { maxSteps: 3 }).turn('For ever.')).toMatchObject({
      stopReason: 'max_turn_requests',
    });
  });

  test('continues the conversation with a further prompt', async () => {
    models.script([{ text: ['first'] }, { text: ['second'] }]);
    const { turn, texts } = engine();
    await turn('One.');
    await turn('Two.');
    expect(texts).toEqual(['first', 'second']);
    expect(models.requests.at(-1)?.conversation).toMatchObject({ turn: 1, prompt: 'Two.' });
  });

  test('forgets the oldest images when a conversation carries too many bytes of them', async () => {
    models.script([{ text: ['1'] }, { text: ['2'] }, { text: ['3'] }]);
    let memory = '';
    const { turn } = engine('google', {
      remember: async (said) => {
        memory = said;
      },
    });
    const image = (letter: string) => ({ mimeType: 'image/png', data: letter.repeat(8 * 1024 * 1024) });
    await turn('One.', [image('a')]);
    await turn('Two.', [image('b')]);
    const body = JSON.stringify(models.requests.at(-1)?.body);
    expect(body).not.toContain('aaaa');
    expect(body).toContain('bbbb');
    expect(body).toContain('left out');
    expect(memory.length).toBeLessThan(14 * 1024 * 1024);
  });

  test('puts the base prompt of the run into the instructions', async () => {
    models.script([{ text: ['ok'] }]);
    await engine('anthropic', { basePrompt: 'Speak like a sailor.' }).turn('Hi.');
    expect(JSON.stringify(models.requests.at(-1)?.body.system)).toContain('Speak like a sailor.');
  });
});
