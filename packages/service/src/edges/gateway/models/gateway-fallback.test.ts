import { afterEach, describe, expect, it } from 'vitest';
import { startTestGateway, type TestGateway } from '../../../../test/gateway.ts';
import { all, protocols, send } from '../../../../test/protocols.ts';
import type { ModelSwitch } from '../../../runs/runs/model-in-use.ts';
import { type ModelChoices, noChoices, type Outage } from '../../../team/models/choices.ts';
import type { ProviderName } from '../../../team/models/providers.ts';
import type { Admission, AdmitModelRequest, CheckedModelRequest } from './admission.ts';
import type { GatewayDeps } from './handle-request.ts';

let gateway: TestGateway;
afterEach(() => gateway.close());

const switches: ModelSwitch[] = [];
const health: string[] = [];

/** Starts a gateway whose runs may use the models `otherIds` in place of their own model. */
async function open(
  otherIds: readonly string[],
  more: Partial<ModelChoices> = {},
  options: Pick<GatewayDeps, 'timeouts' | 'admit'> = {},
): Promise<void> {
  switches.length = 0;
  health.length = 0;
  gateway = await startTestGateway({
    ...options,
    routing: {
      read: async () => ({ otherIds, choices: { ...noChoices, ...more }, providerTools: [] }),
      worked: (provider: ProviderName, outage: Outage | undefined) =>
        void health.push(`${provider} works${outage ? ' again' : ''}`),
      failed: (provider: ProviderName) => void health.push(`${provider} fails`),
      switched: async (change) => void switches.push(change),
      removed: async () => undefined,
    },
  });
}
const outage = (provider: ProviderName): Outage => ({ provider, beganAt: 'then', probeInSeconds: 9 });

const fallbackOf: Readonly<Record<string, string>> = {
  anthropic: 'anthropic/claude-haiku-4-5',
  'openai responses': 'openai/gpt-5-mini',
  google: 'google/gemini-2.5-flash-lite',
  'openai-compatible': 'local/fake-local-small',
};

describe.each(protocols)('a fallback for $name', (protocol) => {
  const fallback = fallbackOf[protocol.name] ?? '';
  const name = fallback.slice(fallback.indexOf('/') + 1);

  it("answers in place of the run's model if the provider answers 529, and the usage has the fallback's price", async () => {
    await open([fallback]);
    gateway.fake.misbehave({ kind: 'status', status: 529 });
    const { status, text } = await all(await send(gateway, protocol).response);
    expect(status).toBe(200);
    expect(text).not.toBe('');
    expect(gateway.fake.requests.map(({ conversation }) => conversation?.model)).toEqual([
      protocol.modelId.slice(protocol.modelId.indexOf('/') + 1),
      name,
    ]);
    expect(await gateway.usage(1)).toMatchObject({ modelId: protocol.modelId, status: 529, inputTokens: 0 });
    expect(await gateway.usage(2)).toMatchObject({ modelId: fallback, status: 200, inputTokens: 140 });
    await expect.poll(() => switches).toMatchObject([{ from: protocol.modelId, to: fallback }]);
    expect(switches[0]?.reason).toBe('the provider answered 529');
    expect(health).toEqual([expect.stringContaining('fails'), expect.stringContaining('works')]);
  });
});

describe('a fallback', () => {
  const anthropic = protocols[0];
  if (!anthropic) throw new Error('there is no protocol');
  const fallback = 'anthropic/claude-haiku-4-5';

  it('is not used if the provider answers 400 or 429; this answer is forwarded', async () => {
    await open([fallback]);
    gateway.fake.misbehave({ kind: 'status', status: 400, message: 'bad' });
    gateway.fake.misbehave({ kind: 'status', status: 429, message: 'slowly' });
    expect((await all(await send(gateway, anthropic).response)).status).toBe(400);
    expect((await all(await send(gateway, anthropic).response)).status).toBe(429);
    expect(gateway.fake.requests).toHaveLength(2);
    expect([switches, health]).toEqual([[], []]);
  });

  it('is used if the provider answers 200 and then hangs, but not after the first byte was forwarded', async () => {
    const timeouts = { connectMs: 20_000, reachMs: 20_000, silenceMs: 1_000, hangUpMs: 300 };
    await open([fallback], {}, { timeouts });
    gateway.fake.misbehave({ kind: 'hold', afterPieces: 0 });
    expect((await all(await send(gateway, anthropic).response)).status).toBe(200);
    await expect.poll(() => switches).toHaveLength(1);
    gateway.fake.misbehave({ kind: 'hold', afterPieces: 2 });
    expect((await all(await send(gateway, anthropic).response)).cut).toBe(true);
    expect(gateway.fake.requests).toHaveLength(3);
    gateway.fake.release();
  });

  it("that fails too gives the client its own failure, not the failure of the run's model", async () => {
    await open([fallback]);
    gateway.fake.misbehave({ kind: 'status', status: 529, message: 'first' });
    gateway.fake.misbehave({ kind: 'status', status: 503, message: 'second' });
    const { status, text } = await all(await send(gateway, anthropic).response);
    expect([status, text]).toEqual([503, expect.stringContaining('second')]);
    expect(switches).toEqual([]);
  });

  it("is admitted with the fallback's price, and its admission and its usage record have the same request id", async () => {
    const asked: CheckedModelRequest[] = [];
    const admit: AdmitModelRequest = async (_, request) => {
      asked.push(request);
      return { ok: true };
    };
    await open([fallback], {}, { admit });
    gateway.fake.misbehave({ kind: 'status', status: 529 });
    expect((await all(await send(gateway, anthropic).response)).status).toBe(200);
    expect(asked.map(({ target }) => target.id)).toEqual([anthropic.modelId, fallback]);
    expect(asked[0]?.target.price).not.toEqual(asked[1]?.target.price);
    await gateway.usage(2);
    expect(gateway.usages.map(({ requestId }) => requestId)).toEqual(asked.map(({ requestId }) => requestId));
  });

  it('gets no request if the admission refuses the fallback, and the client gets the refusal', async () => {
    const over: Admission = { ok: false, status: 403, message: 'the budget is used up', code: 'budget_exceeded' };
    await open([fallback], {}, { admit: async (_, { target }) => (target.id === fallback ? over : { ok: true }) });
    gateway.fake.misbehave({ kind: 'status', status: 529 });
    const answer = await all(await send(gateway, anthropic).response);
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('the budget is used up')]);
    expect(gateway.fake.requests).toHaveLength(1);
    expect(gateway.usages).toHaveLength(1);
  });

  it('at another provider with the same protocol is used at once during an outage', async () => {
    await open(['openai/gpt-5-mini'], { outages: [outage('local')] });
    const local = protocols.find(({ name }) => name === 'openai-compatible') ?? anthropic;
    expect((await all(await send(gateway, local).response)).status).toBe(200);
    expect(gateway.fake.requests.map(({ provider }) => provider)).toEqual(['openai']);
    await expect
      .poll(() => switches)
      .toMatchObject([{ to: 'openai/gpt-5-mini', reason: 'its provider has an outage' }]);
  });

  it("with another protocol is not used: the request goes to the run's own provider, and an answer of this provider ends the outage", async () => {
    await open(['openai/gpt-5-mini'], { outages: [outage('anthropic')] });
    expect((await all(await send(gateway, anthropic).response)).status).toBe(200);
    expect(gateway.fake.requests.map(({ provider }) => provider)).toEqual(['anthropic']);
    await expect.poll(() => health).toEqual(['anthropic works again']);
  });

  it('is not used if the fallback or the model of the run is disabled', async () => {
    await open([fallback], { disabledIds: [fallback] });
    gateway.fake.misbehave({ kind: 'status', status: 529 });
    expect((await all(await send(gateway, anthropic).response)).status).toBe(529);
    await gateway.close();
    await open([fallback], { disabledIds: [anthropic.modelId] });
    const { status, text } = await all(await send(gateway, anthropic).response);
    expect([status, text]).toEqual([403, expect.stringContaining('has disabled the model')]);
    expect(gateway.fake.requests).toEqual([]);
  });
});
