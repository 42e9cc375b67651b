/** Tests services of the environment with an agent process. `test/services.test.ts` tests them in sandboxes. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import type { EnvironmentService } from '@runyard/contract/environments/services';
import { describe, expect, it, test } from 'vitest';
import { agent, ended, fake, of, sh, start } from '../test/run.ts';

const startWith = async (services: readonly EnvironmentService[], ...scripts: string[]) =>
  await start(
    { ...sh(...scripts), environment: { uid: 'e', config: { services: [...services] } } },
    // Only the services read this variable, because the task has no secrets of the setup.
    { env: { RUNYARD_SEPARATE_SANDBOX: '1' } },
  );
const steps = () => of('setup_step_finished').filter(({ kind }) => kind === 'service');
const failure = () => fake.finished[0]?.error;
const isThere = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test('a service is ready before the agent begins, and ends with the run together with all of its processes', async () => {
  // The program removes its environment, and starts a child in a session of its own, as PostgreSQL does.
  const command =
    'echo $$ > pid; setsid env -i sleep 98761 & echo $! > child; echo starting; sleep 0.3; touch is-ready; wait';
  await startWith([{ name: 'db', command, ready: 'test -e is-ready' }], 'ls; cat pid child');
  await ended();
  expect(steps()[0]).toMatchObject({ name: 'db', output_tail: 'starting\n' });
  expect(fake.output(of('action')[0]?.action_id ?? '')).toContain('is-ready');
  for (const file of ['pid', 'child']) {
    const pid = Number(readFileSync(`${agent.workspace}/${file}`, 'utf8'));
    await expect.poll(() => isThere(pid)).toBe(false);
  }
});

test('output that a service prints during a turn is in the timeline, cut to its last lines', async () => {
  const command = 'touch up; while [ ! -e go ]; do sleep 0.02; done; seq 1 100000; touch done; sleep 600';
  await startWith([{ name: 'db', command, ready: 'test -e up' }], 'touch go; while [ ! -e done ]; do sleep 0.02; done');
  await ended();
  const [, second] = steps();
  expect(second).toMatchObject({ name: 'db: output', output_tail: expect.stringMatching(/\n100000\n$/) });
  expect(Buffer.byteLength(second?.output_tail ?? '')).toBeLessThanOrEqual(8 * 1024);
});

test('a service that ends while the agent works is in the timeline with its last lines', async () => {
  const command = 'touch up; while [ ! -e go ]; do sleep 0.02; done; echo out of memory; exit 7';
  await startWith(
    [{ name: 'db', command, ready: 'test -e up' }],
    'touch go; while kill -0 $(pgrep -f "exit [7]$" | head -1) 2>/dev/null; do sleep 0.02; done; sleep 0.2',
  );
  await ended();
  expect(steps().at(-1)).toMatchObject({
    name: 'db ended',
    output_tail: 'out of memory\n',
    error: 'exited with code 7',
  });
});

test('a server that does not expect reset connections survives the attempts to connect', async () => {
  const server = "require('net').createServer((socket) => socket.write('x'.repeat(1e6))).listen(45904, '127.0.0.1')";
  const service = {
    name: 'db',
    command: `exec node -e "${server}"`,
    port: 45_904,
    ready: 'test -e go || { touch go; false; }',
  };
  const connect = "require('net').connect(45904, '127.0.0.1', function () { this.resume().end(); })";
  await startWith([service], `node -e "${connect}"`);
  await ended();
  expect(failure()).toBeUndefined();
  expect(steps().map(({ name }) => name)).toEqual(['db']);
});

describe('the setup fails', () => {
  it.each<[string, EnvironmentService, string]>([
    ['ends', { name: 'db', command: 'echo no config; exit 3', port: 45_901 }, 'exited with code 3 before it was ready'],
    ['does not exist', { name: 'db', command: 'no-such-program', ready: 'false' }, 'exited with code 127'],
    ['ends although its command ready succeeds', { name: 'db', command: 'exit 4', ready: 'sleep 0.2' }, 'code 4'],
  ])('with the last lines of a service that %s', async (_, service, message) => {
    await startWith([service], 'true');
    await ended();
    expect(failure()).toMatchObject({
      code: 'environment_setup_failed',
      message: expect.stringContaining(`The service db ${message.startsWith('exited') ? message : ''}`),
    });
    expect(failure()?.message).toContain(message);
    expect(of('action')).toEqual([]);
  });

  it('if another program already listens on the port of the service', async () => {
    const server = (port: number) => `exec node -e "require('net').createServer().listen(${port}, '127.0.0.1')"`;
    await startWith(
      [
        { name: 'one', command: server(45_902), port: 45_902 },
        { name: 'two', command: server(45_903), port: 45_902 },
      ],
      'true',
    );
    await ended();
    expect(failure()?.message).toContain('The service two cannot use port 45902');
  });
});

test('a service with an image that the cluster has started is ready when its port accepts connections', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await startWith(
    [
      { name: 'db', image: 'db:1', port },
      { name: 'queue', image: 'queue:1', ready: 'test "$KEY" = value', env: { KEY: 'value' } },
    ],
    'true',
  );
  await ended();
  expect(failure()).toBeUndefined();
  expect(steps().map(({ name }) => name)).toEqual(['db', 'queue']);
  server.close();
});

test('services do not start in a sandbox that has no network of its own', async () => {
  await start({
    ...sh('true'),
    environment: { uid: 'e', config: { services: [{ name: 's', command: 'touch s', ready: 'true' }] } },
  });
  await ended();
  expect(failure()).toMatchObject({
    code: 'environment_setup_failed',
    message: expect.stringContaining(
      'would listen on the machine. Use a worker with RUNYARD_SANDBOX=bubblewrap, gvisor, docker or kubernetes',
    ),
  });
});
