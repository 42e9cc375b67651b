import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openTestLoops } from '../../../test/loop.ts';

const { models, workspace, engine } = await openTestLoops();

describe('the loop', () => {
  test('waits for the time in Retry-After before it repeats the request', async () => {
    models.script([{ text: ['done'] }]);
    models.misbehave({ kind: 'status', status: 429, retryAfterSeconds: 1 });
    const { turn } = engine();
    const started = performance.now();
    expect((await turn('Hi.')).verdict.success).toBe(true);
    expect(performance.now() - started).toBeGreaterThan(990);
  });

  test('reports a rate limit as resource_unavailable, so that the platform runs the run again', async () => {
    models.misbehave({ kind: 'status', status: 429 }, 3);
    expect((await engine().turn('Hi.')).verdict).toMatchObject({ success: false, code: 'resource_unavailable' });
  });

  test('fails with a code that the platform does not retry if the run has already run actions', async () => {
    models.script([
      { toolCalls: [{ name: 'shell', input: { command: 'true' } }] },
      { text: ['never'], misbehaviour: { kind: 'status', status: 429 } },
    ]);
    expect((await engine().turn('Hi.')).verdict).toMatchObject({ success: false, code: 'agent_stream_failure' });
    models.script([
      { toolCalls: [{ name: 'shell', input: { command: 'true' } }] },
      { text: ['a', 'b', 'c'], misbehaviour: { kind: 'cut', afterPieces: 1 } },
    ]);
    expect((await engine().turn('Hi.')).verdict).toMatchObject({ success: false, code: 'agent_stream_network_error' });
  });

  test('stops waiting for a silent model after the stall timeout', async () => {
    models.misbehave({ kind: 'silent' }, 3);
    const { verdict } = await engine('anthropic', { stallTimeoutMs: 50 }).turn('Hi.');
    expect(verdict).toMatchObject({
      success: false,
      code: 'internal_error',
      message: expect.stringContaining('no answer for 50 ms'),
    });
  });

  test('does not end a slow stream that takes longer than the stall timeout', async () => {
    models.script([{ text: Array.from('abcdefghijklmnopqrstuvwxyz') }]);
    models.misbehave({ kind: 'slow', delayMs: 60 });
    const { turn, texts } = engine('anthropic', { stallTimeoutMs: 1_500 });
    expect((await turn('Hi.')).verdict.success).toBe(true);
    expect(texts.join('')).toBe('abcdefghijklmnopqrstuvwxyz');
  });

  test('joins the halves of an emoji that come in two events of the provider', async () => {
    models.script([{ text: ['start \ud83d', '\ude00 end'] }]);
    const { turn, texts } = engine();
    expect((await turn('Hi.')).verdict).toMatchObject({ success: true });
    expect(texts.every((text) => text.isWellFormed())).toBe(true);
    expect(texts.join('')).toBe('start \u{1F600} end');
  });

  test('stops a model call at once when the turn is cancelled', async () => {
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

  test('stops a command at once when the turn is cancelled, and records the interruption', async () => {
    models.script([
      { toolCalls: [{ name: 'shell', input: { command: 'echo begun; sleep 600; touch late' } }] },
      { text: ['go on'] },
    ]);
    const { turn, spoken, abort, until } = engine();
    const playing = turn('Hi.');
    await until(() => spoken.length > 1);
    abort();
    expect((await playing).stopReason).toBe('cancelled');
    expect(existsSync(join(workspace(), 'late'))).toBe(false);
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

  test('continues the same conversation with a second prompt', async () => {
    models.script([{ text: ['first'] }, { text: ['second'] }]);
    const { turn, texts } = engine();
    await turn('One.');
    await turn('Two.');
    expect(texts).toEqual(['first', 'second']);
    expect(models.requests.at(-1)?.conversation).toMatchObject({ turn: 1, prompt: 'Two.' });
  });

  test('drops the oldest images of a conversation if all images together have too many bytes', async () => {
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
