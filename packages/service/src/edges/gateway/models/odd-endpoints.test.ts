import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { startTestGateway, type TestGateway } from '../../../../test/gateway.ts';
import { eventStream, jsonAnswer, type PlainAnswer, startPlainProvider } from '../../../../test/plain-provider.ts';
import { all, protocols, send } from '../../../../test/protocols.ts';

let gateway: TestGateway;
const provider = closeAtEnd(await startPlainProvider());
beforeEach(async () => {
  await gateway?.close();
  gateway = await startTestGateway({ env: { ...provider.env } });
});
afterAll(async () => {
  await gateway.close();
});

const chat = protocols.find(({ name }) => name === 'openai-compatible') as (typeof protocols)[number];
async function ask(more: object = {}) {
  const body = { model: 'plain', stream: true, messages: [{ role: 'user', content: 'look' }], ...more };
  const response = await send(gateway, { ...chat, modelId: 'local/plain' }, { body }).response;
  return { ...(await all(response)), headers: response.headers };
}
const stream = eventStream({ choices: [{ delta: { content: 'hello there' } }] }, '[DONE]');
/** Mistral's answer to a member that it does not know. */
const refused = jsonAnswer(
  {
    object: 'error',
    message: {
      detail: [{ type: 'extra_forbidden', loc: ['body', 'stream_options'], msg: 'Extra inputs are not permitted' }],
    },
  },
  422,
);

describe('an endpoint that refuses a request', () => {
  it('because of stream_options gets this and later requests without stream_options, and the usage is estimated', async () => {
    provider.answer((body) => (body.stream_options ? refused : stream));
    const before = provider.requests.length;
    expect(await ask({ stream_options: { include_usage: true } })).toMatchObject({ status: 200, text: stream.text });
    expect((await ask()).status).toBe(200);
    expect(provider.requests.slice(before).map(({ body }) => 'stream_options' in body)).toEqual([true, false, false]);
    expect(gateway.usages).toHaveLength(2);
    expect((await gateway.usage(1)).inputTokens).toBeGreaterThan(10);
  });

  it.each([
    ['another member', jsonAnswer({ error: { message: 'tools: not supported' } }, 422)],
    ['everything', jsonAnswer({ error: { message: 'no' } }, 400)],
  ])('because of %s does not get the request again, and the client gets the text of the error', async (_, answer) => {
    provider.answer(() => answer);
    const before = provider.requests.length;
    expect(await ask()).toMatchObject({ status: answer.status, text: answer.text });
    expect(provider.requests).toHaveLength(before + 1);
    expect(await gateway.usage(1)).toMatchObject({ isAnswer: false, inputTokens: 0 });
  });
});

const page = (status: number): PlainAnswer => ({
  status,
  type: 'text/html; charset=utf-8',
  text: '<!doctype html><html><title>Sign\n in \u202e</title>…',
});

describe('a web page in place of an answer', () => {
  it('leads to an error with the title of the page and the name of the setting, and clients do not try again', async () => {
    provider.answer(() => page(200));
    const { status, text, headers } = await ask();
    expect([status, headers['x-should-retry'], headers['content-type']]).toEqual([502, 'false', 'application/json']);
    expect(text).toContain('answered 200 with a web page \\"Sign in\\"');
    expect(text).toContain('RUNYARD_MODEL_BASE_URL');
    expect(await gateway.usage(1)).toMatchObject({ isAnswer: false, status: 502 });
  });

  it.each([404, 503])('leads to an error with the same status %i', async (status) => {
    provider.answer(() => page(status));
    expect(await ask()).toMatchObject({ status, text: expect.stringContaining(`answered ${status} with a web page`) });
  });

  it('is not confused with a stream of events that a small server sends with the type text/html', async () => {
    provider.answer(() => ({ ...stream, type: 'text/html' }));
    expect(await ask()).toMatchObject({ status: 200, text: stream.text });
    expect(await gateway.usage(1)).toMatchObject({ isAnswer: true });
  });
});
