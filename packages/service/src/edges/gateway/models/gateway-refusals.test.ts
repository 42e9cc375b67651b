import { beforeEach, describe, expect, it } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { startTestGateway, type TestGateway } from '../../../../test/gateway.ts';
import { all, type Protocol, protocols, send } from '../../../../test/protocols.ts';

let gateway: TestGateway;
beforeEach(async () => {
  gateway = closeAtEnd(await startTestGateway({ drainMs: 200 }));
});

describe.each(protocols)('the model gateway for $name', (protocol) => {
  it("refuses a model other than the run's", async () => {
    const body = { ...protocol.body, ...('model' in protocol.body && { model: 'gpt-6-astra' }) };
    const path = protocol.path.replace('gemini-2.5-flash', 'gemini-4-carbon');
    const { status, text } = await all(await send(gateway, protocol, { body, path }).response);
    expect(status).toBe(403);
    expect(protocol.errorOf(JSON.parse(text))).toContain('may not use');
    expect(gateway.fake.requests).toHaveLength(0);
    expect(gateway.usages).toHaveLength(0);
  });

  it("never forwards another model that a body names beside the run's model", async () => {
    const twice = JSON.stringify(protocol.body).replace('{', '{"model":"dearer-model",');
    const answer = await all(await send(gateway, protocol, { body: twice }).response);
    // Google names the model in the path only, so the gateway refuses another model in the body.
    expect(answer.status).toBe(protocol.name === 'google' ? 403 : 200);
    for (const request of gateway.fake.requests) expect(JSON.stringify(request.body)).not.toContain('dearer-model');
  });

  it.each([
    ['no token', () => ({})],
    ['a wrong token', (p: Protocol) => p.header('rubbish')],
    ['a token that is too long', (p: Protocol) => p.header('x'.repeat(2000))],
  ])('refuses %s with 401 in the format of the provider', async (_name, headers) => {
    const { status, text } = await all(await send(gateway, protocol, { headers: headers(protocol) }).response);
    expect(status).toBe(401);
    expect(protocol.errorOf(JSON.parse(text))).toContain('run token');
    expect(gateway.fake.requests).toHaveLength(0);
  });

  it('refuses the token of a run with a model of another provider, and the token of a run with the model runbook', async () => {
    const other = protocol.modelId.startsWith('anthropic') ? 'openai/gpt-6.1-sol' : 'anthropic/claude-opus-5-5';
    for (const modelId of [other, 'runbook']) {
      const { status } = await all(
        await send(gateway, protocol, { headers: protocol.header(gateway.token(modelId)) }).response,
      );
      expect(status).toBe(403);
    }
    expect(gateway.fake.requests).toHaveLength(0);
  });

  it('answers 413 for a body over 16 MB', async () => {
    const body = Buffer.alloc(16 * 1024 * 1024 + 1, 0x20);
    const { status, text } = await all(await send(gateway, protocol, { body }).response);
    expect(status).toBe(413);
    expect(protocol.errorOf(JSON.parse(text))).toContain('larger');
    expect(gateway.fake.requests).toHaveLength(0);
  });

  it('refuses a body of millions of values without parsing it, and answers other requests meanwhile', async () => {
    const head = JSON.stringify(protocol.body).replace(/}$/, ',"more":[');
    const count = Math.floor((16 * 1024 * 1024 - head.length - 10) / 3);
    const body = `${head}${'{},'.repeat(count)}{}]}`;
    let longestUs = 0;
    let before = process.threadCpuUsage();
    const heapBefore = process.memoryUsage().heapUsed;
    let heap = heapBefore;
    const timer = setInterval(() => {
      const { user, system } = process.threadCpuUsage(before);
      longestUs = Math.max(longestUs, user + system);
      before = process.threadCpuUsage();
      heap = Math.max(heap, process.memoryUsage().heapUsed);
    }, 1);
    const { status, text } = await all(await send(gateway, protocol, { body }).response);
    clearInterval(timer);
    expect(status).toBe(400);
    expect(protocol.errorOf(JSON.parse(text))).toContain('values');
    // Parsing this body would block the process for more than ten seconds. The check works in slices of a few milliseconds.
    expect(longestUs / 1e3).toBeLessThan(3_000);
    expect(heap - heapBefore).toBeLessThan(150 * 1024 * 1024);
    expect(gateway.fake.requests).toHaveLength(0);
  });

  it('answers 400 for a body that nests too deeply', async () => {
    const body = JSON.stringify(protocol.body).replace(/}$/, `,"more":${'['.repeat(100)}${']'.repeat(100)}}`);
    const { status, text } = await all(await send(gateway, protocol, { body }).response);
    expect([status, protocol.errorOf(JSON.parse(text))]).toEqual([400, expect.stringContaining('100 levels')]);
  });

  it.each(['{', '[]', 'null', '"x"', ''])('answers 400 for the body %j', async (body) => {
    expect((await all(await send(gateway, protocol, { body }).response)).status).toBe(400);
  });

  it("lists only the run's model, and sends no request to the provider", async () => {
    const path = protocol.path.replace(/(gateway\/[a-z]+\/v1(beta)?)\/.*/, '$1/models');
    const { status, text } = await all(await send(gateway, protocol, { path, method: 'GET', body: '' }).response);
    expect(status).toBe(200);
    expect(text).toContain(protocol.modelId.split('/')[1]);
    expect(gateway.fake.requests).toHaveLength(0);
  });
});
