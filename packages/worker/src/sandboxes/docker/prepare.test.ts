import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { closeAtEnd, newFolder } from '../../../../../test/support/close-at-end.ts';
import { prepareContainer } from './prepare.ts';

let folder = '';
let server: Server;
/** Statuses of the fake engine's next answers to kill requests. After these answers, it answers 204 and ends the container. */
let failures: number[];
let kills: string[];
let removalStatus: number;

beforeEach(async () => {
  folder = newFolder();
  failures = [];
  kills = [];
  removalStatus = 204;
  const ended = Promise.withResolvers<void>();
  server = closeAtEnd(
    createServer(async (request, response) => {
      const url = new URL(request.url ?? '', 'http://engine');
      const step = url.pathname.split('/').at(-1);
      if (step === 'json') {
        const State = { Status: 'exited', Pid: 0, ExitCode: 137, OOMKilled: false, Error: '' };
        return void response.end(JSON.stringify({ State }));
      }
      if (step === 'kill') {
        kills.push(url.searchParams.get('signal') ?? '');
        const status = failures.shift() ?? 204;
        if (status === 204) ended.resolve();
        return void response.writeHead(status).end();
      }
      if (request.method === 'DELETE') return void response.writeHead(removalStatus).end();
      if (step === 'wait') await ended.promise;
      response.writeHead(step === 'create' ? 201 : 200).end('{}');
    }),
  );
  server.on('upgrade', (_, socket) => {
    socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n');
    socket.on('error', () => {});
    void ended.promise.then(() => socket.end());
  });
  server.listen(path.join(folder, 'd.sock'));
  await once(server, 'listening');
});
afterEach(async () => {
  server.closeAllConnections();
});

const prepare = () =>
  prepareContainer(
    {
      engine: { socketPath: path.join(folder, 'd.sock'), version: '1.41' },
      readsPrograms: false,
      stateRoot: folder,
      owner: 'owner',
      ownUsers: false,
      disks: { ok: false, reason: 'a test' },
      nofile: 1024,
      log: { warn: () => {} },
    },
    {},
    {
      id: 'one',
      executionId: 'execution',
      image: { id: 'sha256:1', env: [], volumes: [] },
      limits: { memoryMb: 64, processes: 16, tmpMb: 16, diskMb: 16, openFiles: 65_536, cpus: 0 },
      runtime: folder,
    },
  );

test('a kill is repeated until the engine has killed the container', async () => {
  failures = [500, 503];
  const sandbox = await prepare();
  const running = await sandbox.run(['/node'], {});
  sandbox.kill('kill');
  expect(await running.ended).toMatchObject({ exitCode: 137 });
  expect(kills).toEqual(['SIGKILL', 'SIGKILL', 'SIGKILL']);
  await sandbox.dispose();
});

test('SIGTERM is sent only once, and a kill is not repeated if the container has ended', async () => {
  failures = [500, 409];
  const sandbox = await prepare();
  const running = await sandbox.run(['/node'], {});
  sandbox.kill('terminate');
  while (kills.length < 1) await new Promise((resolve) => setImmediate(resolve));
  sandbox.kill('kill');
  while (kills.length < 2) await new Promise((resolve) => setImmediate(resolve));
  // The container has ended, so this kill request gets the answer 409.
  sandbox.kill('kill');
  await running.ended;
  await sandbox.dispose();
  expect(kills).toEqual(['SIGTERM', 'SIGKILL', 'SIGKILL']);
});

test('a container that the engine cannot remove is killed', async () => {
  removalStatus = 500;
  const sandbox = await prepare();
  const running = await sandbox.run(['/node'], {});
  await sandbox.dispose();
  await running.ended;
  expect(kills).toEqual(['SIGKILL']);
});
