import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startTestGateway, type TestGateway } from '../../../../test/gateway.ts';
import { all, protocols, send, toolTurns } from '../../../../test/protocols.ts';
import { expectNoSecret } from '../../../../test/secrets.ts';

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await startTestGateway({ drainMs: 200 });
});
afterEach(() => gateway.close());

describe.each(protocols)('the model gateway for $name', (protocol) => {
  it.each([429, 500, 529])('passes on the status %i with its body and Retry-After', async (status) => {
    gateway.fake.misbehave({ kind: 'status', status, retryAfterSeconds: 7, message: 'not now, please' });
    const response = await send(gateway, protocol).response;
    expect(response.headers['retry-after']).toBe('7');
    expect(response.headers['content-type']).toContain('application/json');
    const { text, everything } = await all(response);
    expect(response.statusCode).toBe(status);
    expect(protocol.errorOf(JSON.parse(text))).toBe('not now, please');
    expectNoSecret(everything);
    expect(everything).not.toContain('of-the-operator');
    expect(await gateway.usage(1)).toMatchObject({ status, inputTokens: 0, outputTokens: 0 });
  });

  it("cuts the client's stream if the provider's stream is cut, after forwarding all bytes that the provider sent before", async () => {
    gateway.fake.script(toolTurns);
    gateway.fake.misbehave({ kind: 'cut', afterPieces: 3 });
    const answer = await all(await send(gateway, protocol).response);
    expect(answer.status).toBe(200);
    expect(answer.cut).toBe(true);
    expect(answer.text).not.toBe('');
    const usage = await gateway.usage(1);
    expect(usage.status).toBe(502);
    if (protocol.name === 'anthropic')
      expect(usage).toMatchObject({ inputTokens: 100, cacheReadTokens: 40, cacheWriteTokens: 7, outputTokens: 3 });
    if (protocol.name === 'google')
      expect(usage).toMatchObject({ inputTokens: 107, cacheReadTokens: 40, outputTokens: 5 });
  });

  it('aborts the request to the provider when the client closes its connection before the answer, and counts the tokens of the prompt', async () => {
    gateway.fake.misbehave({ kind: 'silent' });
    const { request, response } = send(gateway, protocol);
    response.catch(() => {});
    const upstream = await gateway.fake.request(1);
    request.destroy();
    expect(await upstream.end).toBe('client_gone');
    const usage = await gateway.usage(1);
    expect(usage).toMatchObject({ status: 499, outputTokens: 0, isAnswer: true });
    expect(usage.inputTokens).toBeGreaterThan(10);
  });

  it('forwards slow streams, garbage and error events unchanged', async () => {
    gateway.fake.script(toolTurns);
    gateway.fake.misbehave({ kind: 'slow', delayMs: 5 });
    gateway.fake.misbehave({ kind: 'garbage', afterPieces: 2 });
    gateway.fake.misbehave({ kind: 'error_event', afterPieces: 3 });
    const slow = await all(await send(gateway, protocol).response);
    const garbage = await all(await send(gateway, protocol).response);
    const error = await all(await send(gateway, protocol).response);
    expect([slow.status, garbage.status, error.status]).toEqual([200, 200, 200]);
    expect(garbage.text).toContain('{"not json');
    expect(error.text).toContain('Overloaded');
    expect(await gateway.usage(2)).toMatchObject({ outputTokens: 30, cacheReadTokens: 40 });
    expect((await gateway.usage(1)).outputTokens).toBe(30);
  });

  it('follows no redirect', async () => {
    gateway.fake.misbehave({ kind: 'redirect', location: `${gateway.fake.url}/elsewhere` });
    const response = await send(gateway, protocol).response;
    const { status, text } = await all(response);
    expect(status).toBe(502);
    expect(response.headers.location).toBeUndefined();
    expect(text).toContain('BASE_URL');
    expect(gateway.fake.requests).toHaveLength(1);
  });
});

describe.each(protocols)('a model gateway with short timeouts for $name', (protocol) => {
  beforeEach(async () => {
    await gateway.close();
    gateway = await startTestGateway({
      timeouts: { connectMs: 20_000, reachMs: 20_000, silenceMs: 1_000, hangUpMs: 300 },
    });
  });

  it('answers 504 if the provider does not answer in time', async () => {
    gateway.fake.misbehave({ kind: 'silent' });
    const { status, text } = await all(await send(gateway, protocol).response);
    expect(status).toBe(504);
    expect(protocol.errorOf(JSON.parse(text))).toContain('did not answer in time');
    expect(await (await gateway.fake.request(1)).end).toBe('client_gone');
  });

  it('forwards a refusal even if the body of the refusal does not end', async () => {
    gateway.fake.misbehave({ kind: 'status', status: 400, message: 'too long', stalls: true });
    const { status, text } = await all(await send(gateway, protocol).response);
    expect([status, text]).toEqual([400, expect.stringContaining('too long')]);
  });

  it('cuts a stream if the provider stops sending', async () => {
    gateway.fake.misbehave({ kind: 'hold', afterPieces: 2 });
    const answer = await all(await send(gateway, protocol).response);
    expect(answer.cut).toBe(true);
    expect((await gateway.usage(1)).status).toBe(502);
    gateway.fake.release();
  });
});
