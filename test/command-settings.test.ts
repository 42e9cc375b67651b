/**
 * Tests commands with wrong settings, with which no program can start. Also tests commands whose settings differ from those of the
 * programs that already run on the data folder.
 */
import http from 'node:http';
import net from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { type RunningCommand, runCommand } from './support/command-line.ts';
import { processesOf } from './support/processes-of.ts';
import { describeSupervised, runyard } from './support/supervised.ts';

describeSupervised('a command', (here) => {
  test('rejects a port that is in use, prints the port and leaves no process', async () => {
    const server = net.createServer();
    const port = await new Promise<number>((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as net.AddressInfo).port));
    });
    try {
      for (const command of ['up', 'run'] as const) {
        const refused = await runCommand([runyard, command, ...(command === 'run' ? ['hi there'] : [])], {
          cwd: here.folder,
          env: { ...here.env, RUNYARD_PORT: String(port) },
        });
        expect(refused.output).toContain(`port ${port} on 127.0.0.1 is in use`);
        expect(refused.code).toBe(1);
      }
      expect(processesOf(here.folder)).toEqual([]);
    } finally {
      server.close();
    }
  });

  test('rejects wrong settings before it starts a program, and prints no secrets', async () => {
    const refused = await runCommand([runyard, 'up'], {
      cwd: here.folder,
      env: { ...here.env, RUNYARD_LOG: 'loud', RUNYARD_DATABASE_URL: 'mysql://u:hunter2@h/d' },
    });
    expect(refused.code).toBe(2);
    expect(refused.output).toContain('RUNYARD_LOG: ');
    expect(refused.output).toContain('RUNYARD_DATABASE_URL: must be a postgres:// URL');
    expect(refused.output).not.toContain('hunter2');
    expect(processesOf(here.folder)).toEqual([]);
  });

  test('reports that the database cannot be reached, and prints the last log lines of the service', async () => {
    const database = new URL(process.env.TEST_DATABASE_URL ?? '');
    database.password = 'hunter2';
    database.pathname = '/nowhere';
    const refused = await runCommand([runyard, 'up'], {
      cwd: here.folder,
      env: { ...here.env, RUNYARD_DATABASE_URL: database.href },
    });
    expect(refused.code).toBe(1);
    expect(refused.output).toContain('the service did not start');
    expect(refused.output).toContain('database "nowhere" does not exist');
    expect(refused.output).not.toContain('hunter2');
    expect(processesOf(here.folder)).toEqual([]);
  });

  describe('while programs run', () => {
    let up: RunningCommand;
    beforeAll(async () => {
      up = here.start('up');
      await up.sees('Ctrl-C stops everything.');
    });

    test('uses its own settings, or exits with 1 and prints each setting that is different in the running programs', async () => {
      const call = (args: string[], more: Record<string, string>) =>
        runCommand([runyard, ...args], { cwd: here.folder, env: { ...here.env, ...more } });
      const dead = { RUNYARD_BASE_URL: 'http://127.0.0.1:9' };
      for (const args of [['run', 'say hello'], ['runs'], ['status']]) {
        const refused = await call(args, dead);
        expect(refused.output).toContain('http://127.0.0.1:9');
        expect(refused.output).not.toContain('SUCCEEDED');
        expect(refused.code).toBe(1);
      }
      const otherPort = await call(['runs'], { RUNYARD_PORT: '4999' });
      expect(otherPort.output).toMatch(/RUNYARD_PORT: here 4999; running with \d+\n.*runyard down && bin\/runyard up/);
      expect(otherPort.code).toBe(1);
      expect(otherPort.output).toContain(`running with ${new URL(here.origin()).port}`);
      expect((await call(['runs'], { RUNYARD_PORT: new URL(here.origin()).port })).code).toBe(0);
      const otherKey = { RUNYARD_ANTHROPIC_API_KEY: 'sk-canary', RUNYARD_MODEL_BASE_URL: 'http://127.0.0.1:9/v1' };
      const refused = await call(['run', 'say hello'], otherKey);
      expect(refused.output).toContain('RUNYARD_ANTHROPIC_API_KEY: here set; running with not set');
      expect(refused.output).toContain('RUNYARD_MODEL_BASE_URL: here http://127.0.0.1:9/v1; running with not set');
      expect(refused.output).not.toContain('canary');
      expect(refused.code).toBe(1);
      expect((await call(['runs'], otherKey)).output).toContain('no runs');
      const named = await call(['runs'], { RUNYARD_BASE_URL: here.origin().replace('127.0.0.1', 'localhost') });
      expect(named, 'the key of the folder is for its own service').toMatchObject({ code: 0 });
    });

    test('sends the key of the data folder only to the service of this folder', async () => {
      const headers: (string | undefined)[] = [];
      const other = http.createServer((request, response) => {
        headers.push(request.headers.authorization);
        response.writeHead(401).end();
      });
      await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
      try {
        const { port } = other.address() as net.AddressInfo;
        const base = { RUNYARD_BASE_URL: `http://127.0.0.1:${port}` };
        await runCommand([runyard, 'runs'], { cwd: here.folder, env: { ...here.env, ...base } });
        expect(headers).toEqual([undefined]);
      } finally {
        other.close();
      }
    });

    test('uses the running programs if it is `run`, and prints their address and exits with 1 if it is another `up`', async () => {
      const second = await runCommand([runyard, 'up'], { cwd: here.folder, env: here.env });
      expect(second.code).toBe(1);
      expect(second.output).toContain(`runyard is running already (process ${up.child.pid}, ${here.origin()})`);
      const run = await runCommand([runyard, 'run', '--json', '-'], {
        cwd: here.folder,
        env: here.env,
        input: '```sh\ntrue\n```',
      });
      expect(run.output).not.toContain('starting');
      const last = JSON.parse(run.output.trimEnd().split('\n').at(-1) ?? '');
      expect(last).toMatchObject({ type: 'run', run: { state: 'SUCCEEDED' } });
    });
  });
});
