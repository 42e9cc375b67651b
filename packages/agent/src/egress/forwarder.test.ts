import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { closeAtEnd, newFolder } from '../../../../test/support/close-at-end.ts';
import { startEgressForwarder } from './forwarder.ts';

const folder = newFolder();
const proxy: Server = closeAtEnd(createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket)));
proxy.listen(join(folder, 'egress.sock'));
await once(proxy, 'listening');
const forwarder = closeAtEnd(await startEgressForwarder(join(folder, 'egress.sock')));

const port = (): number => Number(new URL(forwarder.variables.HTTPS_PROXY ?? '').port);

test('the forwarder passes bytes in both directions until both sides have ended', async () => {
  const socket = connect(port(), '127.0.0.1');
  const sent = Buffer.alloc(3 * 1024 * 1024, 'bytes');
  socket.end(sent);
  const got: Buffer[] = [];
  for await (const chunk of socket) got.push(chunk as Buffer);
  expect(Buffer.concat(got).equals(sent)).toBe(true);
});

test('the forwarder sets the proxy variables in upper and lower case, and excludes loopback addresses', () => {
  const { variables } = forwarder;
  for (const name of ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY']) {
    expect(variables[name]).toBe(`http://127.0.0.1:${port()}`);
    expect(variables[name.toLowerCase()]).toBe(variables[name]);
  }
  const direct = ['127.0.0.1', '127.0.0.0/8', '0.0.0.0', '[::1]', 'sandbox', '.localhost'];
  expect(variables.NO_PROXY?.split(',')).toEqual(expect.arrayContaining(direct));
});

test('the forwarder sets the options with which Java uses the proxy', () => {
  const { JAVA_TOOL_OPTIONS: options } = forwarder.variables;
  expect(options).toContain(`-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=${port()}`);
  expect(options).toContain('-Dhttp.nonProxyHosts=localhost|');
});

test('the forwarder closes a connection if it cannot reach the proxy', async () => {
  const gone = await startEgressForwarder(join(folder, 'missing.sock'));
  const socket = connect(Number(new URL(gone.variables.HTTP_PROXY ?? '').port), '127.0.0.1');
  socket.resume();
  await once(socket, 'close');
  gone.close();
});
