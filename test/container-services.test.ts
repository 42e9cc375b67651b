/** Tests services of an environment that start from container images. The test starts a real container engine. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, readdir, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type { Environment, EnvironmentConfig } from '@runyard/contract/environments/environments';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestEngine, type TestEngine } from './support/container-engine.ts';
import { supervisorOf } from './support/supervisor-of.ts';
import { eventually, killHard, type System, startSystem } from './support/system.ts';

const started = await startTestEngine();
const name = typeof started === 'string' ? `services from images (skipped: ${started})` : 'services from images';
const limitMs = 300_000;
const port = 8_081;

/**
 * Entry point of the image of the tests. Tries what a hostile service would try, writes a report, and serves the report on the port that is
 * its argument.
 */
const entryPoint = `#!/bin/sh
get() { bash -c 'exec 3<>/dev/tcp/$0/$1 && printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3 && cat <&3' "$1" "$2" 2>&1 | tail -n 1; }
mkdir -p /run/www
{
  echo "arguments <$*> user $(id -u) $(id -G)"
  echo "variables $(env | sort | tr '\\n' ' ')"
  echo "files $(ls -d /workspace /home /opt /harness /run/runyard /var/run/docker.sock 2>/dev/null | tr '\\n' ' ')."
  echo "mounts $(cut -d' ' -f2,3 /proc/mounts | grep -v ' \\(proc\\|sysfs\\|cgroup\\|cgroup2\\|mqueue\\|devpts\\|overlay\\)$' | tr '\\n' ';')"
  echo "processes $(ls /proc | grep -c '^[0-9]')"
  echo "tokens $(cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c ry[rk]_)"
  echo "rights $(grep -E 'CapEff|CapBnd|NoNewPrivs|^Seccomp:' /proc/self/status | tr -d '\\t' | tr '\\n' ' ')"
  echo "routes $(wc -l </proc/net/route) links $(tail -n +3 /proc/net/dev | grep -vc '^ *lo:')"
  echo "host $(get 127.0.0.1 "$HOST_PORT")"
  echo "metadata $(get 169.254.169.254 80)"
  echo "root $(touch /bin/x 2>&1)"
  echo "data $(chmod 700 /data && touch /data/x && stat -c '%u %a' /data)"
} >/run/www/report
cat /run/www/report
cat /proc/sys/kernel/random/uuid >/run/www/id
exec httpd -f -p "$1" -h /run/www
`;

/** Copies bash and its libraries into a root folder, because the commands of busybox cannot connect without libraries. */
async function addBash(root: string): Promise<void> {
  const libraries = execFileSync('ldd', ['/bin/bash'], { encoding: 'utf8' }).match(/\/\S+/g) ?? [];
  for (const file of ['/bin/bash', ...libraries]) await cp(file, path.join(root, file), { dereference: true });
}

describe.skipIf(typeof started === 'string')(name, () => {
  const engine = started as TestEngine;
  let system: System;
  let host: Server;
  let hostPort = 0;

  beforeAll(async () => {
    const root = await engine.makeRoot();
    await engine.makeImage('box:1', root);
    await addBash(root);
    await writeFile(path.join(root, 'start.sh'), entryPoint);
    await chmod(path.join(root, 'start.sh'), 0o755);
    const changes = ['ENTRYPOINT ["/start.sh"]', `CMD ["${port}"]`, 'VOLUME /data', 'ENV OF_IMAGE=seen', 'USER root'];
    await engine.makeImage('web:1', root, changes);
    host = createServer((_, response) => response.end('HOST REACHED')).listen(0, '127.0.0.1');
    await once(host, 'listening');
    hostPort = (host.address() as AddressInfo).port;
    system = await startSystem({
      env: {
        RUNYARD_SANDBOX: 'docker',
        RUNYARD_DOCKER_HOST: engine.host,
        RUNYARD_DOCKER_IMAGE: 'box:1',
        RUNYARD_DOCKER_REGISTRIES: 'docker.io',
        RUNYARD_SANDBOX_DISK_MB: '64',
        RUNYARD_SANDBOX_MEMORY_MB: '512',
      },
    });
  }, limitMs);
  afterAll(async () => {
    await system?.stop();
    expect(await engine.containers(), 'containers that are left').toEqual([]);
    expect(await engine.engine.call('GET', '/volumes'), 'volumes that are left').toMatchObject({ Volumes: [] });
    host?.close();
    await engine[Symbol.asyncDispose]();
  }, limitMs);

  const web = { name: 'web', image: 'web:1', port };
  const get = (of: number, file = 'report') =>
    `node -e "require('http').get('http://127.0.0.1:${of}/${file}', (answer) => answer.pipe(process.stdout)).on('error', (error) => { console.log(error.code); process.exitCode = 1; })"`;
  const sh = (...commands: string[]): string => commands.map((each) => `\`\`\`sh\n${each}\n\`\`\``).join('\n\n');
  const create = async (prompt: string, config: EnvironmentConfig, more: object = {}): Promise<string> => {
    const body = { config: { name: 'Services', ...config } };
    const { uid } = await system.call<Environment>('POST', '/agent/environments', body, 201);
    return await system.createRun(prompt, { config: { environment_id: uid, ...more } });
  };
  const conversationOf = async (runId: string) =>
    JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`).catch(String));
  const stepsOf = async (runId: string) => {
    type Step = { kind: string; name: string; output_tail?: string; error?: string };
    const { events } = await system.call<{ events: { event_type: string; payload?: Step }[] }>(
      'GET',
      `/agent/runs/${runId}/timeline`,
    );
    return events.flatMap(({ event_type, payload }) =>
      event_type === 'setup_step_finished' && payload?.kind === 'service' ? [payload] : [],
    );
  };
  const succeed = async (runId: string): Promise<string> => {
    const run = await system.untilEnded(runId);
    const seen = await conversationOf(runId);
    expect(run, `${JSON.stringify(run.status_message)} ${seen} ${JSON.stringify(await stepsOf(runId))}`).toMatchObject({
      state: 'SUCCEEDED',
    });
    return seen;
  };
  const failureOf = async (config: EnvironmentConfig) => {
    const runId = await create(sh('true'), config);
    const run = await system.untilEnded(runId);
    expect(run.state).toBe('FAILED');
    return run.status_message?.message ?? '';
  };
  const none = async () => (await engine.containers()).length === 0;

  test('start after the setup and before the agent, which reaches them on 127.0.0.1, and their output is in the timeline', async () => {
    const config = {
      variables: { OF_ENVIRONMENT: 'seen' },
      setup_commands: [`! ${get(port)}`],
      services: [
        { name: 'first', command: 'touch ~/first; exec sleep 600', ready: 'test -e ~/first' },
        { ...web, env: { OF_SERVICE: 'a b $(c)', HOST_PORT: String(hostPort) } },
        {
          name: 'two',
          image: ' web:1 ',
          command: "8082 'two words'",
          port: 8_082,
          ready: 'test "$READY" = yes',
          env: { READY: 'yes' },
        },
      ],
    };
    const runId = await create(sh(get(port), get(8_082)), config);
    const seen = await succeed(runId);
    expect(seen).toContain(`arguments <${port}> user`);
    expect(seen).toContain('arguments <8082 two words> user');
    const steps = await stepsOf(runId);
    expect(steps.slice(0, 3).map((step) => step.name)).toEqual(['first', 'web', 'two']);
    expect(steps[1]?.output_tail).toContain(`arguments <${port}>`);
    await eventually('removal of the containers', none);
  });

  test('have no right, no network, no file, no variable and no process of the sandbox, and nothing of the run', async () => {
    await system.call('PUT', '/secrets/OF_AGENT', { value: 'value-of-the-agent-4712', scope: 'team' });
    const config = {
      variables: { OF_ENVIRONMENT: 'seen' },
      secrets: [{ name: 'OF_AGENT' }],
      services: [{ ...web, env: { OF_SERVICE: 'a b $(c)', HOST_PORT: String(hostPort) } }],
    };
    const runId = await create(sh('test -n "$OF_AGENT"', 'echo token >~/token', get(port)), config);
    const seen = await succeed(runId);
    const lines = (await stepsOf(runId)).flatMap(({ output_tail = '' }) => output_tail.split('\n'));
    const line = (start: string) => lines.find((each) => each.startsWith(start));
    expect(seen).toContain('arguments');
    const text = lines.join('\n');
    expect(text).toMatch(/user [789]\d{4} [789]\d{4}\n/);
    expect(line('variables')).toMatch(/OF_IMAGE=seen OF_SERVICE=a b \$\(c\)/);
    expect(text).not.toMatch(/OF_ENVIRONMENT|OF_AGENT|value-of|RUNYARD|TASK_ID|PROXY/i);
    expect(line('files')).toBe('files .');
    expect(line('mounts')).not.toMatch(/workspace|agent|runyard/);
    expect(text).toContain('tokens 0\n');
    expect(Number(/processes (\d+)/.exec(text)?.[1])).toBeLessThan(8);
    expect(text).toMatch(/CapBnd:0+ /);
    expect(text).toMatch(/CapEff:0+ /);
    expect(text).toContain('NoNewPrivs:1');
    expect(text).toContain('Seccomp:2');
    expect(text).toContain('routes 1 links 0\n');
    expect(line('host')).toMatch(/refused/);
    expect(line('metadata')).toMatch(/unreachable/);
    expect(text).toContain('root touch: /bin/x: Read-only file system');
    expect(line('data')).toMatch(/^data [789]\d{4} 700$/);
  });

  test('cannot be reached from the machine and from another sandbox', async () => {
    const runId = await create(sh('touch here; sleep 1000'), { services: [{ ...web, env: { HOST_PORT: '1' } }] });
    await system.until(runId, ({ state }) => state === 'INPROGRESS');
    const reached = await fetch(`http://127.0.0.1:${port}/report`).then(
      () => true,
      () => false,
    );
    expect(reached).toBe(false);
    expect(await succeed(await create(sh(`! ${get(port)}`), {}))).toContain('ECONNREFUSED');
    await system.call('POST', `/agent/runs/${runId}/cancel`);
    await eventually('removal of the containers after the cancel', none);
  });

  test.each<[string, object, RegExp]>([
    [
      'ends',
      { command: 'no-port' },
      /The service web exited with code \d+ before it was ready\.\nEnd of its output:\n(?:.*\n)?arguments <no-port>/,
    ],
    [
      'has no such program',
      { image: 'box:1', command: 'no-such-program' },
      /The service web could not be started: .*no-such-program.* before it was ready/s,
    ],
    [
      'does not exist',
      { image: 'registry.example/a:1' },
      /the service web: the image registry.example\/a:1 is refused: .*RUNYARD_DOCKER_REGISTRIES/,
    ],
  ])('name themselves and their last lines if an image %s', async (_, change, message) => {
    expect(await failureOf({ services: [{ ...web, ...change }], failure_session_retention_minutes: 0 })).toMatch(
      message,
    );
    await eventually('removal of the containers', none);
  });

  test('stay the same for follow-ups, and start again with the next sandbox of the run', { tags: 'long' }, async () => {
    const runId = await create(sh(get(port, 'id')), { services: [web] }, { idle_timeout_minutes: 0.25 });
    const idsSeen = async () => (await conversationOf(runId)).match(/"text":"[0-9a-f-]{36}\\n"/g) ?? [];
    const followUp = async (count: number) => {
      await system.call('POST', `/agent/runs/${runId}/followups`, { message: sh(get(port, 'id')) });
      return await eventually('the answer', async () => ((await idsSeen()).length === count ? await idsSeen() : null));
    };
    await system.untilEnded(runId);
    expect(new Set(await followUp(2)).size).toBe(1);
    await system.untilEnded(runId);
    await eventually('removal of the containers', none);
    expect(new Set(await followUp(3)).size).toBe(2);
    await eventually('removal of the containers', none);
  });

  test('continue when the worker is killed, and end with the supervisor of their sandbox', {
    tags: 'long',
  }, async () => {
    const line = (await system.logs()).split('\n').find((text) => text.includes('"sandboxes live here"')) ?? '';
    const { folder } = JSON.parse(line) as { folder: string };
    const all = path.join(folder, 's');
    const prompt = sh(
      get(port, 'id'),
      'touch begun; while ! [ -e go ]; do sleep 0.05; done',
      get(port, 'id'),
      'sleep 1000',
    );
    const runId = await create(prompt, { services: [web] });
    const workspace = await eventually('begin', async () => {
      for (const id of await readdir(all)) {
        const found = path.join(all, id, 'workspace');
        if ((await readdir(found).catch((): string[] => [])).includes('begun')) return found;
      }
      return null;
    });
    const [sandbox = ''] = (await engine.containers()).filter((each) => !each.endsWith('-web'));
    expect((await engine.containers()).sort()).toEqual([sandbox, `${sandbox}-web`]);
    await killHard(system.worker());
    const left = { Image: 'box:1', Cmd: ['sleep', '100'], Labels: { 'runyard.owner': sandbox.split('-')[1] } };
    const leftName = `${sandbox.slice(1, -1)}${sandbox.endsWith('0') ? '1' : '0'}-web`;
    await engine.engine.call('POST', `/containers/create?name=${leftName}`, { json: left });
    system.startWorker();
    await eventually('removal of the leftover', async () => !(await engine.containers()).includes(`/${leftName}`));
    expect((await engine.containers()).sort()).toEqual([sandbox, `${sandbox}-web`]);
    await writeFile(path.join(workspace, 'go'), '');
    const ids = await eventually('the second answer', async () => {
      const found = (await conversationOf(runId)).match(/"text":"[0-9a-f-]{36}\\n"/g) ?? [];
      return found.length === 2 ? found : null;
    });
    expect(ids[0]).toBe(ids[1]);
    const supervisor = await supervisorOf(folder, sandbox.slice(sandbox.lastIndexOf('-') + 1));
    process.kill(supervisor ?? expect.fail('no supervisor'), 'SIGKILL');
    expect((await system.untilEnded(runId)).status_message?.message).toContain('supervised the sandbox');
    await eventually('end of the containers', none);
  });

  test('share the limits of their sandbox, and their ends are in the timeline with the reason', async () => {
    const shell = (script: string) => `sh -c ${JSON.stringify(script)}`;
    const services = [
      {
        name: 'hungry',
        image: 'box:1',
        ready: 'true',
        command: shell(
          'while [ ! -e /tmp/x ]; do sleep 0.5; touch /tmp/x; done; echo eating; head -c 400m /dev/zero | tail -c 390m >/dev/null && echo fed || exit 9',
        ),
      },
      { name: 'short', image: 'box:1', ready: 'true', command: shell('sleep 1; echo goodbye; exit 7') },
    ];
    const runId = await create(sh('true'), { services }, { idle_timeout_minutes: 1 });
    await succeed(runId);
    const named = async () => new Map((await stepsOf(runId)).map((step) => [step.name, step]));
    await eventually(
      'the ends of both',
      async () => (await named()).has('hungry ended') && (await named()).has('short ended'),
    );
    expect((await named()).get('short ended')).toMatchObject({ error: 'exited with code 7' });
    expect((await named()).get('hungry ended')).toMatchObject({ error: 'used up its 256 MB of memory and was ended' });
    const steps = await stepsOf(runId);
    expect(steps.map((step) => step.output_tail).join('')).not.toContain('fed');
  });
});
