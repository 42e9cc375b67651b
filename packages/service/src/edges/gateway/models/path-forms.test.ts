import { describe, expect, it } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { startTestGateway } from '../../../../test/gateway.ts';
import { all, protocols, send } from '../../../../test/protocols.ts';

const gateway = closeAtEnd(await startTestGateway());

const version = /\/v1(?:beta)?(?=\/)(?!.*\/v1(?:beta)?\/)/;

describe.each(protocols)('the paths of $name', (protocol) => {
  const versions = protocol.path.includes('/google/') ? ['', '/v1', '/v1beta', '/v1beta/v1beta'] : ['', '/v1/v1'];

  it.each(versions)('lead to the same endpoint if they contain "%s" in place of the version', async (written) => {
    const before = gateway.fake.requests.length;
    const usages = gateway.usages.length;
    const { status } = await all(
      await send(gateway, protocol, { path: protocol.path.replace(version, written) }).response,
    );
    expect(status).toBe(200);
    expect(gateway.fake.requests[before]?.path).toMatch(/^(\/local)?\/v1(beta)?\/[a-z]/);
    expect((await gateway.usage(usages + 1)).modelId).toBe(protocol.modelId);
  });

  it.each(versions)(
    'have the same checks of request bodies if they contain "%s" in place of the version',
    async (written) => {
      const before = gateway.fake.requests.length;
      const path = protocol.path.replace(version, written);
      const hosted = { tools: [{ type: 'web_search', googleSearch: {} }] };
      const search = await all(await send(gateway, protocol, { path, body: { ...protocol.body, ...hosted } }).response);
      expect([search.status, search.text]).toEqual([403, expect.stringContaining('web_search')]);
      expect(gateway.fake.requests).toHaveLength(before);
      await all(await send(gateway, protocol, { path, body: { ...protocol.body, made_up: 1 } }).response);
      expect(gateway.fake.requests[before]?.body).not.toHaveProperty('made_up');
    },
  );

  it.each(['/v1/v1/v1', '/v2', '/V1', '/v1/files', '/v1/../..', '//v1', '/v1beta2'])(
    'do not exist if they contain "%s" in place of the version',
    async (written) => {
      const before = gateway.fake.requests.length;
      const path = protocol.path.replace(version, written);
      const { status, text } = await all(await send(gateway, protocol, { path }).response);
      expect(status).toBe(404);
      expect(text).toMatch(/the gateway has no such endpoint of this provider; it has .*GET \/models|Route POST/);
      expect(gateway.fake.requests).toHaveLength(before);
    },
  );
});
