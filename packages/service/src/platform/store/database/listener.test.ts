import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

/**
 * A program that listens through a proxy, stops the proxy, and closes the listener after a failed attempt to connect again. At that
 * time, nothing except the listener could keep the program alive.
 */
const program = `
  import { connect, createServer } from 'node:net';
  import { makeListener } from ${JSON.stringify(import.meta.resolve('./listener.ts'))};
  const url = new URL(process.argv.at(-1));
  const folder = url.searchParams.get('host');
  const port = Number(url.port || 5432);
  const server = folder ? { path: folder + '/.s.PGSQL.' + port } : { host: url.hostname, port };
  const sockets = [];
  const proxy = createServer((socket) => {
    const through = connect(server);
    for (const each of [socket, through]) sockets.push(each.on('error', () => {}));
    socket.pipe(through).pipe(socket);
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  url.search = '';
  url.host = '127.0.0.1:' + proxy.address().port;
  const waits = Promise.withResolvers();
  const log = { warn: () => {}, error: () => {}, info: () => {} };
  const debug = (_fields, message) => message === 'the database does not answer' && waits.resolve();
  const listener = makeListener({ address: { connectionString: url.href }, maxConnections: 1, log: { ...log, debug } });
  await listener.listen('a_channel', () => {});
  proxy.close();
  for (const socket of sockets) socket.destroy();
  await waits.promise;
  await listener.close();
  console.log('closed');`;

test('a listener can be closed while it waits to connect again, even if nothing else keeps the process alive', async () => {
  const args = ['--input-type=module', '--eval', program, process.env.TEST_DATABASE_URL ?? ''];
  expect((await promisify(execFile)(process.execPath, args)).stdout).toBe('closed\n');
});
