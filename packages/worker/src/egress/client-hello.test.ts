import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { clientHello } from '../../test/client-hello.ts';
import { readClientHello } from './client-hello.ts';

test.each([16_384, 100, 1])(
  'readClientHello reads the host name of a message that is split into records of %i bytes',
  (recordBytes) => {
    expect(readClientHello(clientHello({ names: ['example.com'], recordBytes }))).toEqual({
      kind: 'hello',
      name: 'example.com',
      hasEch: false,
    });
  },
);

test('readClientHello reads messages of the TLS client of Node', async () => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect({ port: (server.address() as AddressInfo).port, servername: 'real.example' });
  client.on('error', () => {});
  const [socket] = await once(server, 'connection');
  const [first] = await once(socket, 'data');
  expect(readClientHello(first)).toMatchObject({ kind: 'hello', name: 'real.example' });
  client.destroy();
  socket.destroy();
  server.close();
});

test('readClientHello reports how many bytes it needs, wherever the message is cut', () => {
  const whole = clientHello({ names: ['example.com'], recordBytes: 40 });
  for (let length = 0; length < whole.length; length++) {
    const reading = readClientHello(whole.subarray(0, length));
    expect(reading.kind).toBe('incomplete');
    if (reading.kind === 'incomplete') expect(reading.needs).toBeGreaterThan(length);
  }
});

test('a message that arrives in small records is parsed only a few times', () => {
  const whole = clientHello({ names: ['example.com'], extensions: [[21, Buffer.alloc(5_000)]], recordBytes: 1 });
  let reading = readClientHello(whole.subarray(0, 1));
  for (let times = 1; reading.kind === 'incomplete' && times < 100; times++)
    reading = readClientHello(whole.subarray(0, reading.needs));
  expect(reading).toMatchObject({ kind: 'hello', name: 'example.com' });
});

test.each([0xfe0d, 0xfe0a, 0xffce])('readClientHello detects an encrypted host name in the extension %i', (type) => {
  const hello = clientHello({ names: ['example.com'], extensions: [[type, Buffer.alloc(8)]] });
  expect(readClientHello(hello)).toMatchObject({ hasEch: true });
});

test('readClientHello reads a message without a host name', () => {
  expect(readClientHello(clientHello({}))).toEqual({ kind: 'hello', name: undefined, hasEch: false });
});

const nameTwice = clientHello({
  names: ['example.com'],
  extensions: [[0, Buffer.from([0, 4, 0, 0, 1, 97])]],
});
const good = clientHello({ names: ['example.com'] });
const withByte = (at: number, value: number): Buffer => {
  const changed = Buffer.from(good);
  changed[at] = value;
  return changed;
};

test.each([
  ['two names', clientHello({ names: ['example.com', 'evil.example'] })],
  ['the extension twice', nameTwice],
  ['an empty list of names', clientHello({ names: [] })],
  ['an empty name', clientHello({ names: [''] })],
  ['an empty record', Buffer.from([22, 3, 1, 0, 0])],
  ['a record that is too large', Buffer.from([22, 3, 1, 255, 255])],
  ['a message of 16 MB', Buffer.from([22, 3, 1, 0, 4, 1, 255, 255, 255])],
  ['another message', withByte(5, 2)],
  ['a session id beyond the end', withByte(43, 255)],
  [
    'another record in the middle',
    Buffer.concat([
      clientHello({ names: ['a.example'], recordBytes: 20 }).subarray(0, 25),
      Buffer.from([23, 3, 3, 0, 1, 0]),
    ]),
  ],
])('readClientHello refuses %s', (_, bytes) => {
  expect(readClientHello(bytes).kind).toBe('malformed');
});

test.each([
  ['HTTP', Buffer.from('GET / HTTP/1.1\r\n')],
  ['SSH', Buffer.from('SSH-2.0-OpenSSH\r\n')],
  ['SSL 2', Buffer.from([0x80, 0x2e, 1, 0, 2])],
])('readClientHello detects that %s is not TLS', (_, bytes) => {
  expect(readClientHello(bytes).kind).toBe('not_tls');
});

test('readClientHello needs limited time for any bytes', () => {
  for (let seed = 1; seed < 2_000; seed++) {
    const bytes = Buffer.from(good);
    for (let change = 0; change < 4; change++)
      bytes[(seed * 31 + change * 17) % bytes.length] = (seed * 7 + change) % 256;
    expect(() => readClientHello(bytes)).not.toThrow();
  }
});
