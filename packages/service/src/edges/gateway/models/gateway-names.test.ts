import { makeNameResolver } from '@runyard/system/names/resolver';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type FakeNameServer, startFakeNameServer } from '../../../../../../test/fakes/name-server.ts';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { startTestGateway, type TestGateway } from '../../../../test/gateway.ts';
import { all, protocols, send } from '../../../../test/protocols.ts';

let names: FakeNameServer;
let gateway: TestGateway;
beforeEach(async () => {
  names = closeAtEnd(await startFakeNameServer({}, () => true));
});
afterEach(async () => {
  await gateway.close();
});

it('the model gateway answers 502 with only host and port of a provider whose name cannot be resolved', async () => {
  const { lookup } = makeNameResolver({ servers: [names.address], timeoutMs: 200 });
  const urls = ['ANTHROPIC', 'OPENAI', 'GOOGLE'].map((name) => [`RUNYARD_${name}_BASE_URL`, 'http://provider.test/v1']);
  const timeouts = { connectMs: 60_000, reachMs: 6_000, silenceMs: 60_000, hangUpMs: 60_000 };
  gateway = await startTestGateway({ env: Object.fromEntries(urls), lookup, timeouts });
  const [protocol] = protocols;
  if (!protocol) throw new Error('there is no protocol');
  const { status, text } = await all(await send(gateway, protocol).response);
  expect(status).toBe(502);
  expect(text).toContain('provider.test:80 cannot be reached: the name could not be looked up (EAI_AGAIN)');
  expect(names.questions.length).toBeGreaterThan(0);
});
