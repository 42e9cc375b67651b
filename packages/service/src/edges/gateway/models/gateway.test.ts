import { stepCountIs, streamText, tool } from 'ai';
import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { secrets, startTestGateway, type TestGateway } from '../../../../test/gateway.ts';
import { all, protocols, send, toolTurns } from '../../../../test/protocols.ts';
import { expectNoSecret } from '../../../../test/secrets.ts';

let gateway: TestGateway;
beforeEach(async () => {
  gateway = closeAtEnd(await startTestGateway({ drainMs: 200 }));
});

describe.each(protocols)('the model gateway for $name', (protocol) => {
  it('serves the real SDK with tool calls and counts every kind of token', async () => {
    gateway.fake.script(toolTurns);
    const ran: string[] = [];
    const shell = tool({
      inputSchema: z.object({ command: z.string() }),
      execute: async ({ command }) => {
        ran.push(command);
        return 'a b';
      },
    });
    const model = protocol.sdk(gateway.url, gateway.token(protocol.modelId));
    const result = streamText({
      model,
      prompt: 'look',
      tools: { shell },
      stopWhen: stepCountIs(4),
      maxRetries: 0,
      // Without this option, the second request refers to answers that the provider stores.
      providerOptions: { openai: { store: false } },
    });
    expect(await result.text).toBe('It says a b.');
    expect(ran).toEqual(['printf "a b" && echo ünï']);
    const [first, second] = [await gateway.usage(1), await gateway.usage(2)];
    expect(first).toMatchObject({
      modelId: protocol.modelId,
      runId: `run of ${protocol.modelId}`,
      executionId: 'execution',
      status: 200,
      inputTokens: protocol.whole.input,
      outputTokens: 30,
      cacheReadTokens: 40,
      cacheWriteTokens: protocol.whole.cacheWrite,
    });
    expect(second).toMatchObject({ inputTokens: 50, outputTokens: 8, cacheReadTokens: 0, cacheWriteTokens: 0 });
    if (protocol.cost === null) {
      expect(first.costUsd).toBeNull();
      expect(first.breakdown).toBeNull();
    } else {
      for (const [kind, usd] of Object.entries(protocol.cost)) {
        expect(first.breakdown?.[kind as keyof typeof protocol.cost]).toBeCloseTo(usd, 12);
      }
      expect(first.costUsd).toBeCloseTo(
        Object.values(protocol.cost).reduce((sum, usd) => sum + usd),
        12,
      );
    }
    expect(first.requestId).not.toBe(second.requestId);
    expect(gateway.usages).toHaveLength(2);
  });

  it('counts an answer that is not streamed', async () => {
    gateway.fake.script(toolTurns);
    const body: Record<string, unknown> = { ...protocol.body };
    delete body.stream;
    const path = protocol.path.replace('streamGenerateContent?alt=sse', 'generateContent');
    const { text, status } = await all(await send(gateway, protocol, { body, path }).response);
    expect(status).toBe(200);
    expect(JSON.parse(text)).toBeTypeOf('object');
    expect(await gateway.usage(1)).toMatchObject({
      inputTokens: protocol.whole.input,
      outputTokens: 30,
      cacheReadTokens: 40,
    });
  });

  it('forwards each chunk before the provider sends the next one', async () => {
    gateway.fake.script(toolTurns);
    gateway.fake.misbehave({ kind: 'hold', afterPieces: 3 });
    const response = await send(gateway, protocol).response;
    const seen: string[] = [];
    const first = Promise.withResolvers<void>();
    response.on('data', (bytes: Buffer) => {
      seen.push(bytes.toString('utf8'));
      first.resolve();
    });
    await first.promise;
    const upstream = await gateway.fake.request(1);
    expect(upstream.sent()).toBeLessThanOrEqual(3);
    const ended = new Promise((resolve) => response.once('end', resolve));
    gateway.fake.release();
    await ended;
    expect(seen.length).toBeGreaterThan(1);
  });

  it("sends the real credential to the provider, and no part of it or of the operator's settings to the sandbox", async () => {
    const headers = {
      ...protocol.header(gateway.token(protocol.modelId)),
      cookie: 'a=b',
      'x-forwarded-for': '1.2.3.4',
      authorization2: 'x',
    };
    const { everything } = await all(await send(gateway, protocol, { headers }).response);
    const upstream = await gateway.fake.request(1);
    expect(secrets.some((secret) => JSON.stringify(upstream.headers).includes(secret))).toBe(true);
    expect(JSON.stringify(upstream.headers) + upstream.query).not.toContain('run-token');
    expect(upstream.headers).not.toHaveProperty('cookie');
    expect(upstream.headers).not.toHaveProperty('x-forwarded-for');
    expectNoSecret(everything);
    for (const trace of ['of-the-operator', 'ratelimit', 'set-cookie', 'req_fake', 'server-timing']) {
      expect(everything.toLowerCase()).not.toContain(trace);
    }
    await gateway.usage(1);
    expectNoSecret(gateway.log());
    expect(gateway.log()).not.toContain('run-token');
  });

  it('counts a compressed answer and forwards it decompressed', async () => {
    gateway.fake.script(toolTurns);
    gateway.fake.misbehave({ kind: 'gzip' });
    const response = await send(gateway, protocol).response;
    expect(response.headers['content-encoding']).toBeUndefined();
    expect((await all(response)).text).toContain('data: ');
    expect(await gateway.usage(1)).toMatchObject({ outputTokens: 30, cacheReadTokens: 40 });
    expect((await gateway.fake.request(1)).headers['accept-encoding']).toBe('identity');
  });
});
