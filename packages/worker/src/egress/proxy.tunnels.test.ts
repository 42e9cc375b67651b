import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { clientHello } from '../../test/client-hello.ts';
import {
  publicAddress,
  startEchoServer,
  startTestProxy,
  type TestProxy,
  type TestProxyOptions,
} from '../../test/egress.ts';

let proxy: TestProxy;
const echo = await startEchoServer();
afterEach(async () => {
  echo.forget();
  await proxy[Symbol.asyncDispose]();
});
afterAll(() => void echo.server.close());

const hosts = [
  'example.com',
  '*.wild.example',
  'db.example.com:5432',
  '169.254.169.254',
  '10.0.0.1',
  '[::1]',
  '[::ffff:7f00:1]',
];
async function start(options: Partial<TestProxyOptions> = {}): Promise<void> {
  proxy = await startTestProxy(echo.server, { hosts, ...options });
  proxy.names['example.com.'] = [publicAddress];
  proxy.names['db.example.com.'] = [publicAddress];
  proxy.names['a.wild.example.'] = [publicAddress];
}
const established = 'HTTP/1.1 200 Connection established';
const hello = clientHello({ names: ['example.com'] });
const ended = async (socket: Socket): Promise<void> => {
  socket.resume();
  if (!socket.closed) await new Promise((resolve) => socket.once('end', resolve).once('close', resolve));
  socket.destroy();
};

describe('a tunnel to port 443', () => {
  test.each(['example.com:443', 'EXAMPLE.com:443', 'example.com.:443'])(
    'that was opened for %s passes TLS',
    async (authority) => {
      await start();
      const { status, socket } = await proxy.connect(authority);
      expect(status).toBe(established);
      socket.write(hello.subarray(0, 20));
      socket.write(hello.subarray(20));
      const [back] = await once(socket, 'data');
      expect(back.equals(hello)).toBe(true);
      socket.write('then anything');
      expect(String((await once(socket, 'data'))[0])).toBe('then anything');
      expect(proxy.dialled).toEqual([`${publicAddress}:443`]);
      expect(proxy.denied).toEqual([]);
      socket.destroy();
    },
  );

  test.each([
    ['another name', clientHello({ names: ['evil.example'] }), 'sni_mismatch'],
    ['no name', clientHello({}), 'sni_missing'],
    ['a hidden name', clientHello({ names: ['example.com'], extensions: [[0xfe0d, Buffer.alloc(8)]] }), 'ech'],
    ['two names', clientHello({ names: ['example.com', 'evil.example'] }), 'bad_handshake'],
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n'), 'not_tls'],
  ])('is denied if it begins with %s, and the server gets no byte', async (_, first, reason) => {
    await start();
    const { socket } = await proxy.connect('example.com:443');
    socket.write(first);
    const [alert] = await once(socket, 'data');
    expect([...alert]).toEqual([21, 3, 3, 0, 2, 2, 49]);
    await ended(socket);
    expect(proxy.denied).toEqual([`example.com 443 ${reason}`]);
    expect(echo.got()).toBe('');
  });

  test.each([
    ['stops in the middle', (socket: Socket) => socket.write(hello.subarray(0, 30))],
    ['never begins', () => undefined],
    [
      'never ends',
      (socket: Socket) => {
        const more = setInterval(() => socket.write(Buffer.from([22, 3, 1, 0, 1, 1])), 2);
        socket.once('close', () => clearInterval(more));
        // Ignores the error if the proxy closes the connection while this client is sending.
        socket.on('error', () => clearInterval(more));
      },
    ],
  ])('is closed if the TLS handshake %s', async (_, send) => {
    await start({ limits: { headersMs: 1_000 } });
    const { socket } = await proxy.connect('example.com:443');
    send(socket);
    await ended(socket);
    expect(proxy.denied).toEqual(['example.com 443 bad_handshake']);
    expect(echo.got()).toBe('');
  });
});

test.each([
  ...[
    'evil.example:443',
    'example.com:8080',
    'www.example.com:443',
    'wild.example:443',
    'example.com.evil.example:443',
  ],
])('a tunnel to %s is not allowed', async (authority) => {
  await start();
  expect((await proxy.connect(authority)).status).toBe('HTTP/1.1 403 Forbidden');
  expect(proxy.denied).toEqual([`${authority.replace(':', ' ')} host_not_allowed`]);
  expect(proxy.dialled).toEqual([]);
});

test.each([
  ...[
    '2130706433:443',
    '0x7f000001:443',
    '0177.0.0.1:443',
    '127.1:443',
    '[fe80::1%eth0]:443',
    'example.com',
    'example.com:0',
  ],
  ...['user@example.com:443', 'example.com:443:443', 'http://example.com:443', 'ex\tample.com:443'],
])('a tunnel to %j is denied or cannot be parsed', async (authority) => {
  await start({ hosts: [...hosts, '127.0.0.1'], networks: ['127.0.0.0/8'] });
  expect((await proxy.connect(authority)).status).not.toContain('200');
  expect(proxy.dialled).toEqual([]);
});

describe('a tunnel to an address or a name', () => {
  test.each(['169.254.169.254:443', '10.0.0.1:443', '[::1]:443', '[::FFFF:127.0.0.1]:443', '[::ffff:7f00:1]:443'])(
    'is denied for the private address %s',
    async (authority) => {
      await start();
      expect((await proxy.connect(authority)).status).toBe('HTTP/1.1 403 Forbidden');
      expect(proxy.denied[0]).toMatch(/ 443 private_address$/);
      expect(proxy.dialled).toEqual([]);
    },
  );

  test.each([
    '10.0.0.1',
    '127.0.0.1',
    '::1',
    '::ffff:10.0.0.1',
    '64:ff9b::a00:1',
    'fd00::1',
    'fe80::1',
    '100.64.0.1',
    '224.0.0.1',
    '0.0.0.0',
    '168.63.129.16',
  ])('is denied for a name with the private address %s', async (address) => {
    await start();
    proxy.names['a.wild.example.'] = [publicAddress, address];
    expect((await proxy.connect('a.wild.example:443')).status).toBe('HTTP/1.1 403 Forbidden');
    expect(proxy.denied).toEqual(['a.wild.example 443 private_address']);
    expect(proxy.dialled).toEqual([]);
  });

  test('gets a new look-up of the name, whose addresses decide whether the tunnel is allowed', async () => {
    await start();
    proxy.names['a.wild.example.'] = [[publicAddress], ['127.0.0.1'], [publicAddress]];
    const first = await proxy.connect('a.wild.example:443');
    const second = await proxy.connect('a.wild.example:443');
    expect([first.status, second.status]).toEqual([established, 'HTTP/1.1 403 Forbidden']);
    expect(proxy.dialled).toEqual([`${publicAddress}:443`]);
    first.socket.destroy();
  });

  test('is allowed for a private address if both the operator and the environment allow this address', async () => {
    await start({ networks: ['10.0.0.0/8'] });
    const { status, socket } = await proxy.connect('10.0.0.1:443');
    expect(status).toBe(established);
    socket.write(clientHello({}));
    await once(socket, 'data');
    socket.destroy();
    expect((await proxy.connect('10.0.0.2:443')).status).toContain('403');
  });
});

test('a tunnel to another port passes TLS only for the named host, and passes other protocols', async () => {
  await start();
  const plain = await proxy.connect('db.example.com:5432');
  plain.socket.write('SELECT 1');
  expect(String((await once(plain.socket, 'data'))[0])).toBe('SELECT 1');
  plain.socket.destroy();
  const tls = await proxy.connect('db.example.com:5432');
  echo.forget();
  tls.socket.write(clientHello({ names: ['evil.example'] }));
  await ended(tls.socket);
  expect(proxy.denied).toEqual(['db.example.com 5432 sni_mismatch']);
  expect(echo.got()).toBe('');
});

test('a tunnel to a host that does not exist gets 502 and is not reported as denied', async () => {
  await start();
  expect((await proxy.connect('b.wild.example:443')).status).toBe('HTTP/1.1 502 Bad Gateway');
  expect(proxy.denied).toEqual([]);
});

test('the proxy denies a host that the environment allows and the operator does not', async () => {
  await start({ operator: 'none' });
  expect((await proxy.connect('example.com:443')).status).toContain('403');
  expect(proxy.denied).toEqual(['example.com 443 operator']);
});

describe('the proxy of a sandbox', () => {
  test('closes connections beyond 64, but keeps the first 64 open', async () => {
    await start();
    const held = await Promise.all(Array.from({ length: 64 }, () => proxy.open()));
    await ended(await proxy.open());
    expect(held.filter(({ closed }) => closed)).toEqual([]);
    expect(proxy.denied).toEqual([' 0 too_many_connections']);
    for (const socket of held) socket.destroy();
  });

  test('closes all connections when the allowed bytes are used up', async () => {
    await start({ limits: { maxBytes: 100_000 } });
    const { socket } = await proxy.connect('db.example.com:5432');
    socket.write(Buffer.alloc(200_000, 'x'));
    await ended(socket);
    await ended(await proxy.open());
    expect(proxy.denied).toEqual([' 0 too_many_bytes']);
    expect(proxy.reports).toHaveLength(1);
  });

  test.each([{ idleMs: 500 }, { longestMs: 500 }])('closes a connection that exceeds the limit %o', async (limits) => {
    await start({ limits });
    await ended((await proxy.connect('db.example.com:5432')).socket);
  });

  test('reports 300 denied connections in 20 reports', async () => {
    await start();
    for (let index = 0; index < 300; index++) (await proxy.connect(`h${index % 50}.example:443`)).socket.destroy();
    expect(proxy.reports).toHaveLength(20);
  });
});

test('the end of the proxy ends open tunnels', async () => {
  await start();
  const { socket } = await proxy.connect('db.example.com:5432');
  await Promise.all([ended(socket), proxy.close()]);
});
