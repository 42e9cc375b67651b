import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, expect, test } from 'vitest';
import { closeAtEnd, newFolder } from '../../../../test/support/close-at-end.ts';
import { makeSupervisorProgram } from '../runtime/supervisor-program.ts';
import { type RelayThread, startRelayThread } from './relay-thread.ts';

const folder = newFolder();
const seen: (string | undefined)[] = [];
const service: http.Server = closeAtEnd(
  http.createServer((request, response) => {
    seen.push(request.url);
    response.end('from the service');
  }),
);
service.listen(0, '127.0.0.1');
await once(service, 'listening');
const relays: RelayThread = startRelayThread((await makeSupervisorProgram(folder, process.execPath)).entry);
afterAll(async () => {
  await relays.close();
  service.closeAllConnections();
});

const serviceRoot = (): string => `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
const socketOf = (name: string): string => path.join(folder, `${name}.sock`);
const open = (name: string, memory = async () => ({ oom_kills: 0, memory_mb: 64 })) =>
  relays.openRelay({ socketPath: socketOf(name), serviceRoot: serviceRoot() }, memory);

async function get(name: string, target: string): Promise<string> {
  const request = http.get({ socketPath: socketOf(name), path: target, agent: false });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return `${response.statusCode} ${await text(response)}`;
}

test('the thread forwards requests, and answers questions about the memory with the answer of the process', async () => {
  let asked = 0;
  const relay = await open('plain', async () => ({ oom_kills: ++asked, memory_mb: 64 }));
  expect(await get('plain', '/api/v1/harness-support/task')).toBe('200 from the service');
  expect(await get('plain', '/elsewhere')).toMatch(/^403 /);
  const answers = await Promise.all(Array.from({ length: 20 }, () => get('plain', '/sandbox/memory')));
  expect(answers[0]).toBe('200 {"oom_kills":1,"memory_mb":64}');
  expect(asked).toBeLessThan(20);
  await relay.close();
  await expect(get('plain', '/sandbox/memory')).rejects.toThrow();
});

test('a socket that cannot be opened is reported', async () => {
  await expect(open('no/such/folder')).rejects.toThrow(/listen E/);
});

test('a flood of requests of one sandbox uses no processor time of the process that ends sandboxes', async () => {
  const relay = await open('flood');
  const other = await open('other');
  const packet = Buffer.from('GET /api/v1/harness-support/task HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1000));
  const client = `
    const net = require('node:net');
    for (let n = 0; n < 30; n += 1) {
      const socket = net.connect(${JSON.stringify(socketOf('flood'))});
      const packet = Buffer.from(${JSON.stringify(packet.toString('latin1'))}, 'latin1');
      const more = (error) => error || socket.write(packet, more);
      socket.on('error', () => {}).resume();
      more();
    }`;
  const { Worker } = await import('node:worker_threads');
  const attacker = new Worker(client, { eval: true });
  await expect.poll(() => seen.length, { timeout: 60_000 }).toBeGreaterThan(500);
  const before = process.memoryUsage.rss();
  const count = seen.length;
  const used = process.threadCpuUsage();
  // The service of this test is in this process, so its requests are the only work of this thread.
  expect(await get('other', '/api/v1/harness-support/task')).toBe('200 from the service');
  await expect.poll(() => seen.length, { timeout: 60_000 }).toBeGreaterThan(count + 500);
  const { user, system } = process.threadCpuUsage(used);
  expect((user + system) / 1000 / (seen.length - count)).toBeLessThan(5);
  expect((process.memoryUsage.rss() - before) / 2 ** 20).toBeLessThan(150);
  await attacker.terminate();
  await relay.close();
  await other.close();
}, 120_000);

test('a proxy reports denied connections, and its counts at the end', async () => {
  const reports: unknown[] = [];
  const socketPath = socketOf('proxy');
  const settings = { RUNYARD_EGRESS: [], RUNYARD_EGRESS_PRIVATE_NETWORKS: [] } as never;
  const proxy = await relays.openProxy({ socketPath, hosts: ['example.com'], settings }, (denied) =>
    reports.push(denied),
  );
  const socket = net.connect(socketPath);
  socket.write('CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n'.repeat(1));
  expect(await text(socket)).toContain('403');
  const again = net.connect(socketPath);
  again.write('CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n');
  await text(again);
  expect(reports).toHaveLength(1);
  await proxy.end();
  expect(reports).toHaveLength(2);
  await proxy.close();
});
