import { afterEach, beforeEach, expect, it } from 'vitest';
import { type FakeNameServer, startFakeNameServer } from '../../../../../test/fakes/name-server.ts';
import { startTestGateway, type TestGateway } from '../../../test/gateway.ts';
import { all, protocols, send } from '../../../test/protocols.ts';
import { makeNameResolver } from '../../names/resolver.ts';

let names: FakeNameServer;
let gateway: TestGateway;
beforeEach(async () => {
  names = await startFakeNameServer({}, () => true);
});
afterEach(async () => {
  await gateway.close();
  await names.close();
});

it("answers 502 without the provider's name when the name cannot be resolved", async () => {
  const { lookup } = makeNameResolver({ servers: [names.address], timeoutMs: 200 });
  const urls = ['ANTHROPIC', 'OPENAI', 'GOOGLE'].map((name) => [`RUNYARD_${name}_BASE_URL`, 'http://provider.test/v1']);
  gateway = await startTestGateway({ env: Object.fromEntries(urls), lookup });
  const [protocol] = protocols;
  if (!protocol) throw new Error('there is no protocol');
  const { status, text } = await all(await send(gateway, protocol).response);
  expect(status).toBe(502);
  expect(text).toContain('could not be reached (EAI_AGAIN)');
  expect(text).not.toContain('provider.test');
  expect(names.questions.length).toBeGreaterThan(0);
});
