import net from 'node:net';
import { expect, test } from 'vitest';
import { checkPort, portProblem, reachableOrigin } from './address.ts';

test.each([
  ['127.0.0.1', 'http://127.0.0.1:4180'],
  ['0.0.0.0', 'http://127.0.0.1:4180'],
  ['::', 'http://[::1]:4180'],
  ['localhost', 'http://localhost:4180'],
])('reachableOrigin of a service that listens on %s is %s', (host, origin) =>
  expect(reachableOrigin(host, 4180)).toBe(origin),
);

test('checkPort refuses a port on which another program listens, and says what to do', async () => {
  const server = net.createServer();
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as net.AddressInfo).port));
  });
  try {
    const found = await checkPort('127.0.0.1', port);
    expect(found).toEqual({ ok: false, code: 'EADDRINUSE' });
    expect(portProblem('127.0.0.1', port, 'EADDRINUSE')).toMatch(
      new RegExp(`port ${port} on 127.0.0.1 is in use.*RUNYARD_PORT=`),
    );
  } finally {
    server.close();
  }
});

test('checkPort finds a free port for port 0', async () => {
  const found = await checkPort('127.0.0.1', 0);
  expect(found.ok && found.port).toBeGreaterThan(0);
});

test('checkPort refuses an address that this machine does not have', async () => {
  const found = await checkPort('192.0.2.1', 0);
  expect(found.ok).toBe(false);
  if (!found.ok)
    expect(portProblem('192.0.2.1', 0, found.code)).toContain('192.0.2.1 is not an address of this machine');
});
