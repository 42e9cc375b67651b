import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import Fastify from 'fastify';
import { expect, test } from 'vitest';
import { waitingSignals } from './closing.ts';

test('the waiting signal is aborted from the beginning if the caller has already disconnected', async () => {
  const app = Fastify();
  const signalOf = waitingSignals(app);
  const isAborted = Promise.withResolvers<boolean>();
  app.get('/', async (request) => {
    const left = once(request.raw.socket, 'close');
    client.destroy();
    await left;
    isAborted.resolve(signalOf(request).aborted);
    return '';
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  const client = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  expect(await isAborted.promise).toBe(true);
  await app.close();
});
