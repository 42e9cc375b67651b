/**
 * Tests the proxy configurations in `deploy` with real proxies. Worker and clients reach the service only through the proxy, over TLS.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { endCommands, type RunningCommand, runCommand, startCommand } from './support/command-line.ts';
import { freePort } from './support/free-port.ts';
import { giveDatabase, giveRuntime, keepRuntime } from './support/head-start.ts';
import { runyardFile } from './support/programs.ts';
import { eventually, sandboxProblem } from './support/system.ts';
import {
  type Authority,
  ask,
  makeAuthority,
  open,
  plainNginx,
  proxies,
  startNginx,
  type TlsProxy,
} from './support/tls-proxy.ts';

const root = path.resolve(import.meta.dirname, '..');
const problem = sandboxProblem ?? proxies.nginx.problem;

test.each([
  ['nginx', 'deploy/nginx/runyard.conf'],
  ['caddyfile', 'deploy/caddy/Caddyfile'],
])('the page about proxies shows the configuration for %s', (language, file) => {
  const page = readFileSync(path.join(root, 'docs/proxy.md'), 'utf8');
  expect(page).toContain(`\`\`\`${language}\n${readFileSync(path.join(root, file), 'utf8')}\`\`\``);
});

describe.skipIf(problem !== null)(problem === null ? 'behind a proxy' : `behind a proxy (skipped: ${problem})`, () => {
  let folder = '';
  let runyard = '';
  let authority: Authority;
  let service: RunningCommand;
  let servicePort = 0;
  let key = '';
  const started: TlsProxy[] = [];
  const kept: RunningCommand[] = [];

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'runyard-proxies-'));
    runyard = await runyardFile();
    authority = makeAuthority(path.join(folder, 'certificates'));
    servicePort = await freePort();
    await giveDatabase(path.join(folder, 'service'));
    service = startCommand([runyard, 'service'], {
      cwd: folder,
      env: {
        RUNYARD_DATA_DIR: path.join(folder, 'service'),
        RUNYARD_PORT: String(servicePort),
        RUNYARD_TRUSTED_PROXIES: '127.0.0.1',
      },
    });
    await service.sees('Runyard is running');
    key = readFileSync(path.join(folder, 'service/bootstrap-key'), 'utf8').trim();
  });
  afterAll(async () => {
    for (const { child } of kept) child.kill('SIGINT');
    await Promise.all(kept.map(({ exited }) => exited));
    for (const proxy of started) await proxy.stop();
    service.child.kill('SIGTERM');
    await service.exited;
    endCommands();
    rmSync(folder, { recursive: true, force: true });
  });

  const optionsOf = async (name: string) => ({
    port: await freePort(),
    plainPort: await freePort(),
    servicePort,
    authority,
    folder: path.join(folder, name),
  });
  const clientOf = (origin: string) => ({
    RUNYARD_BASE_URL: origin,
    RUNYARD_API_KEY: key,
    RUNYARD_CA_FILE: authority.file,
    RUNYARD_DATA_DIR: path.join(folder, 'client'),
  });
  const startWorker = (origin: string, name: string): RunningCommand => {
    const worker = startCommand([runyard, 'worker'], {
      cwd: folder,
      env: {
        RUNYARD_BASE_URL: origin,
        RUNYARD_API_KEY_FILE: path.join(folder, 'service/bootstrap-key'),
        RUNYARD_CA_FILE: authority.file,
        RUNYARD_DATA_DIR: path.join(folder, name),
        RUNYARD_WORKER_NAME: name,
      },
    });
    kept.push(worker);
    return worker;
  };
  const doctor = (origin: string, env: Record<string, string>) =>
    runCommand([runyard, 'doctor', '--url', origin], { cwd: folder, env });

  describe.each(['nginx', 'caddy'] as const)('%s', (name) => {
    const missing = proxies[name].problem;
    const title = missing === null ? 'with its configuration' : `with its configuration (skipped: ${missing})`;
    describe.skipIf(missing !== null)(title, () => {
      let origin = '';
      beforeAll(async () => {
        const proxy = await proxies[name].start(await optionsOf(name));
        started.push(proxy);
        origin = proxy.origin;
      });
      const headers = () => ({ authorization: `Bearer ${key}` });
      const call = (method: string, route: string, body: object, more: Parameters<typeof ask>[2] = {}) =>
        ask(authority, `${origin}/api/v1${route}`, {
          method,
          body: JSON.stringify(body),
          ...more,
          headers: { ...headers(), 'content-type': 'application/json', ...more.headers },
        });

      test('a worker that connects through the proxy executes a run, and a reader gets events before the run ends', async () => {
        await giveRuntime(path.join(folder, `worker-${name}`));
        startWorker(origin, `worker-${name}`);
        const created = await call('POST', '/agent/runs', {
          // With the quotes, the prompt does not contain the words of the output. Otherwise the event with the prompt would already
          // contain them.
          prompt: '```sh\necho "be"gun; sleep 6; echo "fin"ished\n```',
          config: { worker_host: `worker-${name}`, idle_timeout_minutes: 0 },
        });
        expect(created.status, created.text).toBe(200);
        const { run_id: runId } = JSON.parse(created.text);
        const stream = await open(authority, `${origin}/api/v1/agent/runs/${runId}/events`, { headers: headers() });
        expect(stream.statusCode).toBe(200);
        let text = '';
        let stateAtBegin: string | undefined;
        for await (const piece of stream) {
          text += piece;
          if (stateAtBegin === undefined && text.includes('begun'))
            stateAtBegin = JSON.parse(
              (await ask(authority, `${origin}/api/v1/agent/runs/${runId}`, { headers: headers() })).text,
            ).state;
          if (text.includes('finished')) break;
        }
        expect(stateAtBegin).toBe('INPROGRESS');
        const ended = await eventually('end of the run', async () => {
          const run = JSON.parse(
            (await ask(authority, `${origin}/api/v1/agent/runs/${runId}`, { headers: headers() })).text,
          );
          return ['SUCCEEDED', 'FAILED', 'ERROR'].includes(run.state) ? run : null;
        });
        expect(ended.state, ended.status_message?.message).toBe('SUCCEEDED');
        await keepRuntime(path.join(folder, `worker-${name}`));
      });

      test('a request with a body of 20 MB succeeds', async () => {
        const prompt = 'Read the file.';
        const data = Buffer.alloc(7_500_000).toString('base64');
        const attachments = ['one', 'two'].map((file_name) => ({
          file_name,
          mime_type: 'application/octet-stream',
          data,
        }));
        const created = await call('POST', '/agent/runs', { prompt, attachments, config: { worker_host: 'nobody' } });
        expect(created.status, created.text).toBe(200);
      });

      test('the audit log shows the real address of a client, although the client sends headers with a forged address', async () => {
        const body = { name: `key of ${name}`, kind: 'personal', expires_in: '1d' };
        const forged = {
          'x-forwarded-for': '198.51.100.9',
          'x-real-ip': '198.51.100.9',
          forwarded: 'for=198.51.100.9',
        };
        const created = await call('POST', '/keys', body, { localAddress: '127.0.0.2', headers: forged });
        expect(created.status, created.text).toBe(201);
        const log = await ask(authority, `${origin}/api/v1/audit-log?limit=1`, { headers: headers() });
        expect(JSON.parse(log.text).entries[0]).toMatchObject({
          action: expect.stringContaining('key'),
          origin: { address: '127.0.0.2' },
        });
      });

      test('doctor finds no fault through the proxy, and says how to set the certificate authority if it is not set', async () => {
        const good = await doctor(origin, clientOf(origin));
        expect(good.output).not.toContain('✗');
        expect(good.output).toContain('events arrive at once');
        expect(good.output).toContain('a body of 20 MB passes');
        expect(good.output).toContain('the service sees this machine as 127.0.0.1');
        expect(good.code).toBe(0);
        const untrusted = await doctor(origin, { RUNYARD_DATA_DIR: path.join(folder, 'client') });
        expect(untrusted.output).toContain('set RUNYARD_CA_FILE to the file of its authority');
        expect(untrusted.code).toBe(1);
      });
    });
  });

  describe('nginx without the settings that Runyard needs', () => {
    let origin = '';
    beforeAll(async () => {
      const proxy = await startNginx(await optionsOf('plain'), plainNginx);
      started.push(proxy);
      origin = proxy.origin;
    });

    test('does not let workers connect, and the worker prints the missing setting for WebSockets', async () => {
      const worker = startWorker(origin, 'worker-plain');
      await worker.sees('proxy_set_header Upgrade $http_upgrade');
    });

    test('refuses a large body, and the command prints the missing setting for bodies', async () => {
      const large = path.join(folder, 'large');
      writeFileSync(large, Buffer.alloc(2_000_000));
      const made = await runCommand([runyard, 'run', 'Read it.', '--detach', '--attach', large], {
        cwd: folder,
        env: clientOf(origin),
      });
      expect(made.output).toContain('client_max_body_size 0');
      expect(made.code).toBe(1);
    });

    test('does not pass the checks of doctor, which name each missing setting', async () => {
      const { output, code } = await doctor(origin, clientOf(origin));
      expect(output).toMatch(/✗ WebSocket .*HTTP 426/);
      expect(output).toMatch(/✗ body size .*HTTP 413/);
      expect(output).toContain('client_max_body_size 0');
      expect(output).toMatch(/! client address .*does not report which client/);
      expect(code).toBe(1);
    });
  });

  test('doctor fails for an address at which no service answers', async () => {
    const { output, code } = await doctor(`https://localhost:${await freePort()}`, clientOf('https://localhost:1'));
    expect(output).toMatch(/✗ service .*does not answer/);
    expect(code).toBe(1);
  });
});
