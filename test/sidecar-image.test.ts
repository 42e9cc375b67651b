/** Tests the sidecar image in containers of a real engine, as oz-agent-worker uses the image. */
import { chmod, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { imageArchive, sidecarLabels } from '../packages/worker/src/sidecar/archive.ts';
import { sidecarContent } from '../packages/worker/src/sidecar/content.ts';
import { type FakeHarnessSupport, startFakeHarnessSupport } from './fakes/harness-support.ts';
import {
  copySidecarByExport,
  copySidecarByScript,
  type FakeContainer,
  type FakeContainerRun,
  startAsContainerWorker,
} from './fakes/public-worker-containers.ts';
import { closeAtEnd } from './support/close-at-end.ts';
import { addMusl, hasMusl, startTestEngine, type TestEngine } from './support/container-engine.ts';
import { isLong } from './support/long.ts';

const started = isLong ? await startTestEngine() : 'bin/test-long runs it';
const name = typeof started === 'string' ? `the sidecar image (skipped: ${started})` : 'the sidecar image';
const limitMs = 180_000;
const request = { root: path.resolve(import.meta.dirname, '..'), busybox: '/bin/busybox', readableNode: false };
const makeImage = async () =>
  imageArchive({
    layers: [await sidecarContent(request)],
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    labels: sidecarLabels('1', 'https://code.test/runyard'),
    name: 'sidecar:1',
    compress: false,
    createdBy: 'test',
  });

describe.skipIf(typeof started === 'string')(name, { timeout: limitMs, tags: 'long' }, () => {
  const { engine, makeRoot, makeImage: makeTestImage, [Symbol.asyncDispose]: stop } = started as TestEngine;
  let fake: FakeHarnessSupport;
  let digest: string;
  let container: FakeContainer | undefined;

  beforeAll(async () => {
    const image = await makeImage();
    digest = image.digest;
    await engine.call('POST', '/images/load', {
      tar: await buffer(image.pieces()),
      answerMs: 0,
    });
    await makeTestImage('box:1', await makeRoot());
    const users = await makeRoot();
    if (hasMusl) await addMusl(users);
    await mkdir(path.join(users, 'tmp'));
    await chmod(path.join(users, 'tmp'), 0o1777);
    await makeTestImage('users:1', users, ['USER 1000:1000']);
    await copySidecarByExport(engine, 'sidecar:1', 'exported');
    await copySidecarByScript(engine, 'sidecar:1', 'copied');
  }, limitMs);
  afterAll(() => stop(), limitMs);
  beforeEach(async () => {
    fake = closeAtEnd(await startFakeHarnessSupport());
  });
  afterEach(async () => {
    if (container !== undefined) await engine.call('DELETE', `/containers/${container.id}?force=1`);
  });

  const start = async (script: string, more: Pick<FakeContainerRun, 'image' | 'volume' | 'backend'>) => {
    fake.task = { ...fake.task, max_workspace_bytes: 100_000_000, prompt: `\`\`\`sh\n${script}\n\`\`\`` };
    container = await startAsContainerWorker(engine, {
      runId: `run-${more.backend}`,
      serverRoot: fake.url,
      runToken: fake.token,
      ...more,
    });
    return container;
  };
  /** Executes the script as the command of a run, and returns the output of the command. */
  const play = async (
    script: string,
    more: Pick<FakeContainerRun, 'image' | 'volume' | 'backend'>,
  ): Promise<string> => {
    const { ended, output } = await start(script, more);
    expect(await ended, 'exit code').toBe(0);
    expect(await output()).toBe('');
    expect(fake.finished).toMatchObject([{ success: true }]);
    return fake.events.flatMap((event) => (event.type === 'action_output' ? [event.text] : [])).join('');
  };

  test('two builds of the same sources give the same sidecar image, which names its version, source and licences', async () => {
    expect((await makeImage()).digest).toBe(digest);
    const { Config, Size } = await engine.call<{ Config: { Labels: object }; Size: number }>(
      'GET',
      '/images/sidecar:1/json',
    );
    expect(Config.Labels).toEqual(sidecarLabels('1', 'https://code.test/runyard'));
    expect(Size).toBeLessThan(160e6);
  });

  test('the agent, started like by the docker backend, runs in an image without libraries, and the run cannot read the run token', async () => {
    const look = 'for p in /proc/[0-9]*; do (tr "\\0" "\\n" <$p/environ; tr "\\0" " " <$p/cmdline; echo) || true; done';
    const printed = await play(
      `pwd; echo "$HOME"; ls -A ~ | wc -l; echo 42 >answer.txt; report-artifact answer.txt; ls /lib /usr 2>&1 || true; (${look}) | grep -a -e RUNYARD -e entrypoint -e main.cjs`,
      { image: 'box:1', volume: 'exported', backend: 'docker' },
    );
    expect(printed).toMatch(/^\/workspace\n\/tmp\/run\.\w{6}\n0\n/);
    expect(printed).toContain('No such file');
    expect(fake.artifacts.map(({ data, bytes }) => [data.filename, String(bytes)])).toEqual([['answer.txt', '42\n']]);
    expect(fake.workspaces).toHaveLength(1);
    // As a control: the script has found the processes of the entry point and of the agent.
    expect(printed).toContain('/agent/entrypoint.sh agent run');
    expect(printed).toContain('/agent/program/main.cjs agent run');
    expect(printed).toContain('RUNYARD_RUN_TOKEN_FD=4');
    expect(printed).not.toContain(fake.token);
  });

  test('the agent, started like by the kubernetes backend, runs in an image with musl, and the user of the image cannot read the memory of the agent', async () => {
    const printed = await play(
      [
        'id -u; pwd; touch made && echo written',
        'for p in /proc/[0-9]*; do case $(tr "\\0" " " <$p/cmdline || true) in "/agent/node "*) agent=$p ;; esac; done',
        'tr "\\0" " " <$agent/cmdline; echo',
        'cat /agent/node >/dev/null || echo REFUSED-node',
        'cat $agent/environ >/dev/null || echo REFUSED-environment',
        'dd if=$agent/mem bs=1 count=0 || echo REFUSED-memory',
        ...(hasMusl ? ['/lib/ld-musl-x86_64.so.1 2>&1 | head -n 1'] : []),
      ].join('\n'),
      { image: 'users:1', volume: 'copied', backend: 'kubernetes' },
    );
    expect(printed).toMatch(/^1000\n\/tmp\/run\.\w{6}\/workspace\nwritten\n\/agent\/node --disable-sigusr1/);
    for (const refused of ['node', 'environment', 'memory']) expect(printed).toContain(`REFUSED-${refused}`);
    if (hasMusl) expect(printed).toContain('musl libc');
  });

  test('the agent ends the run and reports the end when its container is stopped', async () => {
    const { id, ended } = await start('echo begun; sleep 600', {
      image: 'box:1',
      volume: 'exported',
      backend: 'docker',
    });
    await fake.until(({ events }) => events.some(({ type }) => type === 'action_output'));
    await engine.call('POST', `/containers/${id}/kill?signal=SIGTERM`);
    expect(await ended).toBe(143);
    expect(fake.shutdowns).toEqual(['terminated']);
  });
});
