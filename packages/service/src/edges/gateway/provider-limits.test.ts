import { describe, expect, it } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { askModel, openRequests, opus, stateOf } from '../../../test/budgets.ts';
import { eventStream, jsonAnswer, startPlainProvider } from '../../../test/plain-provider.ts';
import { openTestService } from '../../../test/service.ts';

const provider = closeAtEnd(await startPlainProvider());
const service = await openTestService({ env: { ...provider.env, RUNYARD_UNKNOWN_MODEL_PRICE: '1/1' } });

const usage = (more: object = {}) => ({ input_tokens: 100, output_tokens: 40, ...more });
const message = (more: object = {}) => jsonAnswer({ type: 'message', content: [], usage: usage(more) });
const accounted = () => expect.poll(() => openRequests(service)).toBe(0);

/** Creates an environment and starts a run in it. */
async function runWith(provider_tools?: readonly string[], config: object = {}) {
  const environment = { config: { name: `e${Math.random()}`, ...(provider_tools && { provider_tools }) } };
  const { body } = await service.request<{ uid: string }>('POST', '/agent/environments', { body: environment });
  return await service.startExecution({ config: { model_id: opus, environment_id: body.uid, ...config } });
}

const askLocal = async (runToken: string, more: object = {}) => {
  const response = await fetch(`${service.baseUrl}/api/v1/gateway/local/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${runToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'plain', messages: [{ role: 'user', content: 'look around' }], ...more }),
  });
  return { status: response.status, text: await response.text() };
};
const local = (config: object) => service.startExecution({ config: { model_id: 'local/plain', ...config } });

const costOf = async (runId: string) =>
  (
    await service.request<{ request_usage?: { inference_cost_usd?: number; inference_cost_breakdown_usd?: object } }>(
      'GET',
      `/agent/runs/${runId}`,
    )
  ).body.request_usage;

const search = { tools: [{ type: 'web_search_20260318', name: 'web_search' }] };

describe("the provider's own tools", () => {
  it('are refused, and the request is not sent, unless the environment of the run allows them by name', async () => {
    provider.answer(() => message());
    const before = provider.requests.length;
    for (const tools of [undefined, [], ['web_fetch']]) {
      const { runToken } = await runWith(tools);
      expect(await askModel(service.baseUrl, runToken, search)).toMatchObject({
        status: 403,
        text: expect.stringContaining('provider_tools'),
      });
    }
    expect(provider.requests).toHaveLength(before);
    const { runToken } = await runWith(['web_search']);
    expect((await askModel(service.baseUrl, runToken, search)).status).toBe(200);
    expect(provider.requests.at(-1)?.body).toMatchObject(search);
  });

  it('are billed at their price, and count against max_cost_usd', async () => {
    provider.answer(() => message({ server_tool_use: { web_search_requests: 1000, web_fetch_requests: 3 } }));
    const { runId, runToken } = await runWith(['web_search'], { max_cost_usd: 5 });
    expect((await askModel(service.baseUrl, runToken, search)).status).toBe(200);
    await accounted();
    const cost = await costOf(runId);
    expect(cost?.inference_cost_usd).toBeCloseTo(10.0012, 6);
    expect(cost?.inference_cost_breakdown_usd).toMatchObject({ provider_tools_cost_usd: 10 });
    expect(await askModel(service.baseUrl, runToken)).toMatchObject({ status: 403, code: 'budget_exceeded' });
  });

  it.each([[['teleport']], ['web_search'], [[1]]])(
    'an environment with the provider tools %j is refused',
    async (provider_tools) => {
      await service.problem(400, 'POST', '/agent/environments', { body: { config: { name: 'e', provider_tools } } });
    },
  );
});

it('the members that the gateway removed appear once in the timeline, even with several processes', async () => {
  provider.answer(() => message());
  const { runId, runToken } = await runWith();
  for (const more of [{ brand_new: 1, 'a\u0000\u202e': 1 }, { brand_new: 2, newer: 1 }, { newer: 1 }])
    expect((await askModel(service.baseUrl, runToken, more)).status).toBe(200);
  expect(provider.requests.at(-1)?.body).not.toHaveProperty('newer');
  const { body } = await service.request<{ events: { event_type: string; payload: unknown }[] }>(
    'GET',
    `/agent/runs/${runId}/timeline`,
  );
  const changes = body.events.filter(({ event_type }) => event_type === 'model_request_changed');
  expect(changes.map(({ payload }) => payload)).toEqual([
    { model_id: opus, removed: ['(a name of other characters)', 'brand_new'] },
    { model_id: opus, removed: ['newer'] },
  ]);
});

it('a request for several answers is refused if a limit of turns or cost applies', async () => {
  provider.answer(() => jsonAnswer({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 9 } }));
  for (const config of [{ max_turns: 3 }, { max_cost_usd: 2 }]) {
    const { runId, runToken } = await local(config);
    expect(await askLocal(runToken, { n: 128 })).toMatchObject({ status: 400, text: expect.stringContaining('n,') });
    expect((await askLocal(runToken, { n: 1 })).status).toBe(200);
    expect((await stateOf(service, runId)).state).not.toBe('FAILED');
  }
  const { runToken } = await local({});
  expect((await askLocal(runToken, { n: 2 })).status).toBe(200);
});

describe('an answer without usage counts as a turn and has a price', () => {
  const base = { id: 'c', object: 'chat.completion.chunk', model: 'plain' };
  const delta = (content: string) => ({ ...base, choices: [{ index: 0, delta: { content } }] });
  const done = { ...base, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
  it.each([
    ['a complete stream', eventStream(delta('a'), delta('word '.repeat(400)), done, '[DONE]')],
    [
      'usage of zero',
      eventStream(delta('a'), { ...base, choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } }, '[DONE]'),
    ],
    ['a stream that ends early', eventStream(delta('I will now'))],
    ['a stream with an error', eventStream(delta('begin'), { error: { message: 'overloaded', code: 502 } })],
    ['a body in one piece', jsonAnswer({ choices: [{ message: { role: 'assistant', content: 'hi' } }] })],
  ])('%s', async (_, answer) => {
    provider.answer(() => answer);
    const { runId, runToken } = await local({ max_turns: 3 });
    for (let turn = 0; turn < 3; turn += 1) {
      expect((await askLocal(runToken)).status).toBe(200);
      await accounted();
    }
    expect((await askLocal(runToken)).status).toBe(403);
    expect(await stateOf(service, runId)).toMatchObject({ state: 'FAILED', code: 'budget_exceeded' });
    const least = answer.text.includes('word') ? 1_500 : 30;
    expect((await costOf(runId))?.inference_cost_usd).toBeGreaterThan((least / 1e6) * 1);
  });

  it('that counts against max_cost_usd and stops the run', async () => {
    provider.answer(() => eventStream(delta('a'), delta('word '.repeat(400))));
    const { runToken } = await local({ max_cost_usd: 0.0012 });
    const statuses: number[] = [];
    for (let turn = 0; turn < 4 && !statuses.includes(403); turn += 1) {
      statuses.push((await askLocal(runToken)).status);
      await accounted();
    }
    expect(statuses).toEqual([200, 200, 200, 403]);
  });
});
