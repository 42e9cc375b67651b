/** Tests runs of a whole system in containers. The test starts a real container engine. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Environment, EnvironmentConfig } from '@runyard/contract/environments/environments';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findProcesses } from '../packages/worker/src/state/processes.ts';
import { type FakeImageRegistry, startFakeImageRegistry } from './fakes/image-registry.ts';
import { addMusl, hasMusl, startTestEngine, type TestEngine } from './support/container-engine.ts';
import { supervisorOf } from './support/supervisor-of.ts';
import { eventually, killHard, type System, startSystem } from './support/system.ts';

const started = await startTestEngine();
const name = typeof started === 'string' ? `runs in containers (skipped: ${started})` : 'runs in containers';
const limitMs = 300_000;

describe.skipIf(typeof started === 'string')(name, () => {
  const engine = started as TestEngine;
  let system: System;
  let registry: FakeImageRegistry;
  let closedRegistry: FakeImageRegistry;
  const released = Promise.withResolvers<void>();

  beforeAll(async () => {
    const root = await engine.makeRoot();
    await engine.makeImage('box:1', root, ['ENV GREETING=hello', 'ENV PATH=/usr/games:/bin']);
    const layer = execFileSync('tar', ['-C', root, '-c', '.'], { maxBuffer: 1 << 28 });
    const noise = path.join(await engine.makeRoot(), 'noise');
    await writeFile(noise, randomBytes(20 << 20));
    registry = await startFakeImageRegistry({
      'team/box:1': { layer, release: released.promise },
      'team/arm:1': { layer, architecture: 'arm64' },
      'team/private:1': { layer, needsCredentials: true },
      'team/large:1': {
        layer: execFileSync('tar', ['-C', path.dirname(noise), '-c', 'noise'], { maxBuffer: 1 << 28 }),
      },
    });
    closedRegistry = await startFakeImageRegistry({ 'team/closed:1': { layer } }, 'ann:hunter2');
    const config = path.join(root, '../config.json');
    const auth = Buffer.from('ann:hunter2').toString('base64');
    await writeFile(config, JSON.stringify({ auths: { [closedRegistry.address]: { auth } } }));
    system = await startSystem({
      env: {
        RUNYARD_SANDBOX: 'docker',
        RUNYARD_DOCKER_HOST: engine.host,
        RUNYARD_DOCKER_IMAGE: 'box:1',
        RUNYARD_DOCKER_REGISTRIES: `docker.io,${registry.address},${closedRegistry.address}`,
        RUNYARD_DOCKER_CONFIG: config,
        RUNYARD_DOCKER_IMAGE_MB: '16',
        RUNYARD_DOCKER_PULLED_MB: '1',
        RUNYARD_SANDBOX_DISK_MB: '64',
      },
    });
  }, limitMs);
  afterAll(async () => {
    await system?.stop();
    expect(await engine.containers(), 'containers that are left').toEqual([]);
    await registry?.[Symbol.asyncDispose]();
    await closedRegistry?.[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  }, limitMs);

  /** Creates a run in a new environment. */
  const create = async (prompt: string, config: EnvironmentConfig): Promise<string> => {
    const body = { config: { name: 'Containers', ...config } };
    const { uid } = await system.call<Environment>('POST', '/agent/environments', body, 201);
    return await system.createRun(prompt, { config: { environment_id: uid } });
  };
  const sh = (...commands: string[]): string => commands.map((command) => `\`\`\`sh\n${command}\n\`\`\``).join('\n\n');
  const conversationOf = async (runId: string) =>
    JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`));
  const timelineOf = async (runId: string) =>
    (
      await system.call<{ events: { event_type: string; payload?: Record<string, unknown> }[] }>(
        'GET',
        `/agent/runs/${runId}/timeline`,
      )
    ).events;
  /** Returns the folder of the worker's sandboxes. */
  const stateFolder = async (): Promise<string> => {
    const line = (await system.logs()).split('\n').find((text) => text.includes('"sandboxes live here"')) ?? '';
    return JSON.parse(line).folder;
  };
  const succeed = async (runId: string): Promise<string> => {
    const run = await system.untilEnded(runId);
    // A run that failed before its agent sent anything has no conversation.
    const reason = async () => `${JSON.stringify(run.status_message)} ${await conversationOf(runId).catch(String)}`;
    expect(run, run.state === 'SUCCEEDED' ? undefined : await reason()).toMatchObject({ state: 'SUCCEEDED' });
    return await conversationOf(runId);
  };
  const failure = async (image: string) => {
    const runId = await create(sh('true'), { docker_image: image });
    return (await system.untilEnded(runId)).status_message?.message;
  };

  test('a run works in an image that contains neither libraries nor Node: it gets its variables, writes files and reports artifacts', async () => {
    const commands = [
      'echo "$GREETING from $(id -un)"',
      'ls /lib /lib64 /usr 2>&1 || true',
      'node -p "21 * 2"',
      'echo made >made.txt && report-artifact made.txt',
    ];
    const seen = await succeed(await create(sh(...commands), { docker_image: 'box:1', limits: { memory_mb: 256 } }));
    expect(seen).toContain('hello from agent');
    expect(seen).toContain('/lib64: No such file');
    expect(seen).toContain('42');
  });

  test('services and secrets of the setup work in a container', async () => {
    await system.call('PUT', '/secrets/OF_SETUP', { value: 'value-of-the-setup-4711', scope: 'team' });
    const port = 45_872;
    const server = `require('net').createServer((socket) => socket.end('served')).listen(${port})`;
    const config = {
      docker_image: 'box:1',
      secrets: [{ name: 'OF_SETUP', phase: 'setup' as const }],
      setup_commands: ['test -n "$OF_SETUP"'],
      services: [{ name: 'server', command: `exec node -e "${server}"`, port }],
    };
    const ask = `node -e "require('net').connect(${port}, '127.0.0.1').on('data', (data) => console.log(data + ' [' + (process.env.OF_SETUP || '') + ']'))"`;
    expect(await succeed(await create(sh(ask), config))).toContain('served []');
    const left = await create(sh('true'), { ...config, setup_commands: ['echo "$OF_SETUP" > /tmp/left'] });
    expect((await system.untilEnded(left)).status_message?.message).toContain('in /tmp/left');
  });

  test.runIf(hasMusl)('a run works in an image with musl', async () => {
    const root = await engine.makeRoot();
    await addMusl(root);
    await engine.makeImage('musl:1', root);
    const seen = await succeed(
      await create(sh('/lib/ld-musl-x86_64.so.1 2>&1 | head -n 1', 'node -p "6 * 7"'), { docker_image: 'musl:1' }),
    );
    expect(seen).toContain('musl libc');
    expect(seen).toContain('42');
  });

  test('the worker pulls an image once for two runs, shows the pull in the timeline, and removes the image after both runs', async () => {
    const image = `${registry.address}/team/box:1`;
    const runs = [
      await create(sh('echo pulled'), { docker_image: image }),
      await create(sh('true'), { docker_image: image }),
    ];
    const [first = ''] = runs;
    await eventually('the sentence', async () =>
      (await system.run(first)).status_message?.message.includes('pulling the image'),
    );
    released.resolve();
    expect(await succeed(first)).toContain('pulled');
    await succeed(runs[1] ?? '');
    const steps = (await timelineOf(first)).filter(({ payload }) => payload?.kind === 'image');
    expect(steps).toMatchObject([
      { event_type: 'setup_step_started', payload: { name: image } },
      { event_type: 'setup_step_finished', payload: { name: image, bytes: expect.any(Number) } },
    ]);
    expect(registry.layerRequests).toHaveLength(1);
    const names = async (): Promise<(string | undefined)[]> =>
      (await engine.engine.call<{ RepoTags: string[] }[]>('GET', '/images/json')).flatMap(({ RepoTags }) => RepoTags);
    await eventually('removal of the image that was pulled', async () => !(await names()).includes(image));
    expect(await names(), 'an image that the engine had').toContain('box:1');
  });

  test('the worker pulls a private image with the credentials of the operator, which appear in no run and no log', async () => {
    const look = 'env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr "\\0" "\\n"; ls -a ~ /workspace';
    const runId = await create(sh(look), { docker_image: `${closedRegistry.address}/team/closed:1` });
    const seen = await succeed(runId);
    const secrets = ['hunter2', Buffer.from('ann:hunter2').toString('base64')];
    for (const secret of secrets)
      expect(`${seen}${JSON.stringify(await timelineOf(runId))}${await system.logs()}`).not.toContain(secret);
  });

  test.each([
    ['that its registry does not have', 'team/none:1', /could not be pulled: its registry does not have it/],
    ['that needs credentials', 'team/private:1', /could not be pulled: its registry wants credentials/],
    ['of another architecture', 'team/arm:1', /does not exist for the architecture of the worker's machine/],
    ['that is too large', 'team/large:1', /larger than the 16 MB of RUNYARD_DOCKER_IMAGE_MB/],
  ])('a run with an image %s ends, and the error names this reason', async (_, image, message) => {
    expect(await failure(`${registry.address}/${image}`)).toMatch(message);
  });

  test('a run ends if the worker does not allow the registry of its image, and the worker sends no request to this registry', {
    tags: 'long',
  }, async () => {
    expect(await failure('169.254.169.254/latest/meta-data:1')).toMatch(/takes images of docker\.io, .* only/);
  });

  test.each([
    [
      'a volume in the agent’s files',
      ['VOLUME /opt/runyard/agent/chunks'],
      /asks for a volume at .*where the sandbox has files/,
    ],
    ['a link at a folder of the sandbox', [], /\/workspace is a link in it/],
  ])('the worker refuses an image with %s', async (what, changes, message) => {
    const root = await engine.makeRoot();
    if (changes.length === 0) await symlink('/opt/runyard/agent/chunks', path.join(root, 'workspace'));
    const image = `hostile:${what.length}`;
    await engine.makeImage(image, root, changes);
    expect(await failure(image)).toMatch(message);
  });

  test('the worker ignores the entry point, user, volumes and health check of an image, and the agent does not get the variables of the image', {
    tags: 'long',
  }, async () => {
    const root = await engine.makeRoot();
    await writeFile(path.join(root, 'evil.js'), 'console.log("EVIL by Node")');
    await engine.makeImage('evil:1', root, [
      'ENTRYPOINT ["/bin/sh", "-c", "echo EVIL entry point; exit 9"]',
      'USER root',
      'VOLUME /data',
      'HEALTHCHECK --interval=1s CMD touch /workspace/EVIL-health',
      'ENV NODE_OPTIONS=--require=/evil.js LD_PRELOAD=/evil.so HOME=/evil RUNYARD_RELAY_SOCKET=/evil',
    ]);
    const seen = await succeed(
      await create(
        sh(
          'echo "uid $(id -u) home $HOME options $NODE_OPTIONS."',
          'touch /data/x || echo REFUSED-volume',
          'sleep 1.5; ls -A',
          'touch /bin/x || echo REFUSED-root',
        ),
        { docker_image: 'evil:1' },
      ),
    );
    expect(seen).not.toContain('EVIL');
    expect(seen).toMatch(/uid [789]\d{4} home \/home\/agent options \./);
    expect(seen).toContain('REFUSED-volume');
    expect(seen).toContain('REFUSED-root');
  });

  test('a run continues when its worker is killed and started again, and the new worker removes unused containers', async () => {
    const prompt = sh('touch begun; while ! [ -e go ]; do sleep 0.05; done; echo going on');
    const runId = await create(prompt, { docker_image: 'box:1' });
    const all = path.join(await stateFolder(), 's');
    const workspace = await eventually('begin', async () => {
      for (const id of await readdir(all)) {
        const folder = path.join(all, id, 'workspace');
        if ((await readdir(folder).catch((): string[] => [])).includes('begun')) return folder;
      }
      return null;
    });
    const agents = await findProcesses('cmdline', runId);
    const [running = ''] = await engine.containers();
    const prefix = running.slice(0, running.lastIndexOf('-'));
    await killHard(system.worker());
    // Create two containers. The first one must be removed: it looks like a container of this worker that has no record, because the
    // worker was killed before it wrote the record. The second one must stay, because it belongs to another program.
    const owner = prefix.slice('/runyard-'.length);
    const left = { Image: 'box:1', Cmd: ['sleep', '100'], Labels: { 'runyard.owner': owner } };
    for (const container of [`runyard-${owner}-left`, 'of-someone-else'])
      await engine.engine.call('POST', `/containers/create?name=${container}`, { json: left });
    system.startWorker();
    await eventually('removal of the leftover', async () => !(await engine.containers()).includes(`${prefix}-left`));
    expect((await engine.containers()).sort()).toEqual(['/of-someone-else', running].sort());
    await engine.engine.call('DELETE', '/containers/of-someone-else');
    expect(agents.length).toBeGreaterThan(0);
    expect(await findProcesses('cmdline', runId), 'the same agent').toEqual(agents);
    await writeFile(path.join(workspace, 'go'), '');
    expect(await succeed(runId)).toContain('going on');
    await eventually('end of the container', async () => (await engine.containers()).length === 0);
  });

  test('a container and its run end when the supervisor of the container is killed', { tags: 'long' }, async () => {
    const runId = await create(sh('touch begun; sleep 1000'), { docker_image: 'box:1' });
    await system.until(runId, ({ state }) => state === 'INPROGRESS');
    const [running = ''] = await engine.containers();
    const supervisor = await supervisorOf(await stateFolder(), running.slice(running.lastIndexOf('-') + 1));
    process.kill(supervisor ?? expect.fail('no supervisor'), 'SIGKILL');
    expect((await system.untilEnded(runId)).status_message?.message).toContain('supervised the sandbox');
    await eventually('end of the container', async () => (await engine.containers()).length === 0);
  });
});
