import type { ClientRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startTestGateway, type TestGateway } from '../../../../test/gateway.ts';
import { protocols, send, toolTurns } from '../../../../test/protocols.ts';

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await startTestGateway({
    drainMs: 200,
    timeouts: { connectMs: 10_000, reachMs: 10_000, silenceMs: 60_000, hangUpMs: 60_000 },
  });
});
afterEach(() => gateway.close());

/** Closes the client's connection as soon as the first bytes of the answer have arrived. */
async function hangUp({ request, response }: ReturnType<typeof send>): Promise<void> {
  request.on('error', () => {});
  const answer = await response;
  await new Promise((resolve) => answer.once('data', resolve));
  request.destroy();
  await expect.poll(() => gateway.clients()).toBe(0);
}

it.each(protocols.slice(0, 1))(
  'does not send the request of a client that closed its connection during the budget check',
  async (protocol) => {
    await gateway.close();
    let client: ClientRequest | undefined;
    gateway = await startTestGateway({
      admit: async () => {
        client?.destroy();
        await expect.poll(() => gateway.clients()).toBe(0);
        return { ok: true };
      },
    });
    const { request, response } = send(gateway, protocol);
    client = request;
    await expect(response).rejects.toThrow();
    expect(await gateway.usage(1)).toMatchObject({ status: 499, inputTokens: 0 });
    expect(gateway.fake.requests).toEqual([]);
  },
);

describe.each(protocols)('after a client of $name has closed its connection, the model gateway', (protocol) => {
  it('reads the rest of the answer and records all of its tokens', async () => {
    gateway.fake.script(toolTurns);
    gateway.fake.misbehave({ kind: 'hold', afterPieces: 4 });
    await hangUp(send(gateway, protocol));
    const upstream = await gateway.fake.request(1);
    gateway.fake.release();
    expect(await upstream.end).toBe('complete');
    expect(await gateway.usage(1)).toMatchObject({
      status: 499,
      inputTokens: protocol.whole.input,
      outputTokens: 30,
      cacheReadTokens: 40,
      cacheWriteTokens: protocol.whole.cacheWrite,
    });
    expect(gateway.usages).toHaveLength(1);
  });

  it('records all tokens of an answer that the client never read', async () => {
    const usage = { input: 100, output: 30, cacheRead: 40, cacheWrite: 7, reasoning: 5 };
    gateway.fake.script([{ text: Array.from({ length: 12 }, () => 'x'.repeat(1024 * 1024)), usage }]);
    const { request, response } = send(gateway, protocol);
    request.on('error', () => {});
    (await response).pause();
    const upstream = await gateway.fake.request(1);
    await expect.poll(() => upstream.sent()).toBeGreaterThan(3);
    request.destroy();
    expect(await gateway.usage(1)).toMatchObject({ status: 499, outputTokens: 30, cacheReadTokens: 40 });
  });

  it('ends an answer that does not end in time, and records the tokens that were forwarded', async () => {
    await gateway.close();
    gateway = await startTestGateway({
      timeouts: { connectMs: 10_000, reachMs: 10_000, silenceMs: 60_000, hangUpMs: 100 },
    });
    gateway.fake.script(toolTurns);
    gateway.fake.misbehave({ kind: 'hold', afterPieces: 4 });
    await hangUp(send(gateway, protocol));
    expect(await (await gateway.fake.request(1)).end).toBe('client_gone');
    const usage = await gateway.usage(1);
    expect(usage.status).toBe(499);
    expect(usage.inputTokens).toBeGreaterThan(0);
    expect(usage.outputTokens).toBeGreaterThan(0);
    gateway.fake.release();
  });
});
