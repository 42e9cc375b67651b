import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { closeAtEnd } from '../support/close-at-end.ts';
import { fakeModelKeys, startFakeModels } from './models.ts';

const fake = closeAtEnd(await startFakeModels());
beforeEach(() =>
  fake.script([
    {
      thinking: 'What would a person do?',
      text: ['I will ', 'look.'],
      toolCalls: [{ name: 'shell', input: { command: 'printf "a b" && echo ünï' } }],
      usage: { input: 100, output: 30, cacheRead: 40, cacheWrite: 7, reasoning: 5 },
    },
    { text: ['It says ', 'a b.'], usage: { input: 50, output: 8 } },
  ]),
);

const models = {
  anthropic: (key: string = fakeModelKeys.anthropic) =>
    createAnthropic({ baseURL: `${fake.url}/v1`, apiKey: key })('claude-opus-5-5'),
  'openai responses': (key: string = fakeModelKeys.openai) =>
    createOpenAI({ baseURL: `${fake.url}/v1`, apiKey: key }).responses('gpt-5.5'),
  'openai chat': (key: string = fakeModelKeys.openai) =>
    createOpenAI({ baseURL: `${fake.url}/v1`, apiKey: key }).chat('gpt-5.5'),
  google: (key: string = fakeModelKeys.google) =>
    createGoogle({ baseURL: `${fake.url}/v1beta`, apiKey: key })('gemini-3.8-flash'),
  'openai-compatible': (key: string = fakeModelKeys.local) =>
    createOpenAICompatible({ name: 'local', baseURL: `${fake.url}/local/v1`, apiKey: key, includeUsage: true })(
      'fake-local',
    ),
};

describe.each(Object.entries(models))('the fake %s endpoint', (_name, model) => {
  const ran: string[] = [];
  const shell = tool({
    description: 'runs a command',
    inputSchema: z.object({ command: z.string() }),
    execute: async ({ command }) => {
      ran.push(command);
      return 'a b';
    },
  });

  it('streams text, a tool call and the answer to the tool result to the real SDK', async () => {
    ran.length = 0;
    const result = streamText({
      model: model(),
      prompt: 'look',
      tools: { shell },
      stopWhen: stepCountIs(4),
      maxRetries: 0,
    });
    const errors: unknown[] = [];
    for await (const part of result.fullStream) if (part.type === 'error') errors.push(part.error);
    expect(errors).toEqual([]);
    const steps = await result.steps;
    expect(steps).toHaveLength(2);
    expect(ran).toEqual(['printf "a b" && echo ünï']);
    expect(steps[0]?.text).toBe('I will look.');
    expect(steps[0]?.finishReason).toBe('tool-calls');
    expect(steps[0]?.usage).toMatchObject({
      inputTokens: 147,
      outputTokens: 30,
      inputTokenDetails: { cacheReadTokens: 40 },
    });
    expect(steps[1]?.text).toBe('It says a b.');
    expect(steps[1]?.usage).toMatchObject({ inputTokens: 50, outputTokens: 8 });
    expect(fake.requests.at(-1)?.conversation).toMatchObject({ turn: 1, prompt: 'look', toolNames: ['shell'] });
    expect(fake.requests.at(-1)?.conversation?.toolResults.join()).toContain('a b');
  });

  it('returns the same answer without streaming', async () => {
    ran.length = 0;
    const result = await generateText({
      model: model(),
      prompt: 'look',
      tools: { shell },
      stopWhen: stepCountIs(4),
      maxRetries: 0,
    });
    expect(ran).toHaveLength(1);
    expect(result.text).toBe('It says a b.');
    expect(result.steps[0]?.usage).toMatchObject({ inputTokens: 147, outputTokens: 30 });
  });

  it('with the default script, calls the tool that runs the command in the prompt', async () => {
    fake.script((await import('./models/turns.ts')).defaultScript);
    ran.length = 0;
    const prompt = 'Please:\n```sh\nls -l\n```\nthanks';
    const result = await generateText({
      model: model(),
      prompt,
      tools: { shell },
      stopWhen: stepCountIs(4),
      maxRetries: 0,
    });
    expect(ran).toEqual(['ls -l']);
    expect(result.text).toContain('a b');
  });

  it.each([429, 500, 529])('answers %i in the format of the provider', async (status) => {
    fake.misbehave({ kind: 'status', status, retryAfterSeconds: 7, message: 'not now' });
    const failure = await generateText({ model: model(), prompt: 'x', maxRetries: 0 }).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      statusCode: status,
      message: expect.stringContaining('not now'),
      responseHeaders: { 'retry-after': '7' },
    });
  });

  it('refuses a request with a wrong key', async () => {
    const failure = await generateText({ model: model('wrong'), prompt: 'x', maxRetries: 0 }).catch(
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ statusCode: 401 });
  });

  it.each(['cut', 'error_event'] as const)('makes the real SDK fail if the stream has the fault %s', async (kind) => {
    fake.misbehave({ kind, afterPieces: 4 });
    const errors: unknown[] = [];
    const onError = ({ error }: { error: unknown }): void => void errors.push(error);
    const result = streamText({ model: model(), prompt: 'x', maxRetries: 0, onError });
    try {
      for await (const part of result.fullStream) if (part.type === 'error') errors.push(part.error);
    } catch (error) {
      // If the connection breaks, the SDK throws here. But an error event of the provider is a part of the stream.
      errors.push(error);
    }
    expect(errors).not.toEqual([]);
    expect(['cut', 'complete']).toContain(await fake.requests.at(-1)?.end);
  });
});

it('the fake of the models notices when a client closes the connection', async () => {
  fake.misbehave({ kind: 'silent' });
  const abort = new AbortController();
  const count = fake.requests.length + 1;
  const call = generateText({ model: models.anthropic(), prompt: 'x', maxRetries: 0, abortSignal: abort.signal }).catch(
    () => 'aborted',
  );
  const request = await fake.request(count);
  abort.abort();
  expect(await call).toBe('aborted');
  expect(await request.end).toBe('client_gone');
});
