import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, expect, test } from 'vitest';
import { download } from './download.ts';

let requests = 0;
const server = createServer((request, response) => {
  requests += 1;
  const [, place] = /^\/redirect\?to=(.*)$/.exec(request.url ?? '') ?? [];
  if (place !== undefined) return void response.writeHead(302, { location: place }).end();
  response.end('bytes');
}).listen(0, '127.0.0.1');
await once(server, 'listening');
afterAll(() => void server.close());
const local = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

test('a service of this machine may name an address of this machine', async () => {
  expect(await text((await download('http://localhost:1', `${local}/file`)).bytes)).toBe('bytes');
});

test.each([
  ['an address of this machine', 'http://8.8.8.8', `${local}/file`, 'inside of this network'],
  ['the metadata service of a cloud', 'http://8.8.8.8', 'http://169.254.169.254/latest/', 'inside of this network'],
  ['a name of this machine', 'http://8.8.8.8', local.replace('127.0.0.1', 'localhost'), 'inside of this network'],
  ['an address without TLS', 'https://8.8.8.8', 'http://8.8.4.4/file', 'does not use TLS'],
  ['a file', 'http://8.8.8.8', 'file:///etc/passwd', 'no address of the web'],
])('the download refuses %s that a service on the internet names', async (_, origin, address, reason) => {
  const before = requests;
  await expect(download(origin, address)).rejects.toThrow(reason);
  expect(requests).toBe(before);
});

test('the download follows one redirect to the bucket, and checks its address too', async () => {
  expect(await text((await download(local, `${local}/redirect?to=/file`)).bytes)).toBe('bytes');
  await expect(download(local, `${local}/redirect?to=/redirect?to=/file`)).rejects.toThrow('302');
  await expect(download(local, `${local}/redirect?to=file:///etc/passwd`)).rejects.toThrow('no address of the web');
});
