import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, realpath, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { placeAgent, places, starter } from './scripts.ts';

let root = '';
beforeEach(async () => {
  root = await realpath(await mkdtemp(path.join(tmpdir(), 'runyard-starter-')));
  for (const place of Object.values(places)) await mkdir(root + place, { recursive: true });
  await mkdir(`${root}/agent/program`);
  await mkdir(`${root}/run/runyard/once`);
  await writeFile(`${root}/run/runyard/once/token`, 'ryr_token');
  await writeFile(`${root}/agent/program/main.cjs`, 'exports.start = () => console.log("started")');
  // Moves the paths of the pod below the folder of the test.
  const text = starter.replace(/\/(?:home\/agent|agent|workspace|run\/runyard)/g, `${root}$&`);
  await writeFile(`${root}/agent/start.mjs`, text);
});
afterEach(() => rm(root, { recursive: true }));

const start = () => spawnSync(process.execPath, [`${root}/agent/start.mjs`], { encoding: 'utf8' });

test('the start script starts the agent in an image without links', () => {
  expect(start()).toMatchObject({ stdout: 'started\n', status: 0 });
});

test.each(['/run', '/agent', '/home'])(
  'the start script does not start the agent if the path %s of the image is a link to a folder of the run',
  async (name) => {
    await rename(root + name, `${root}/workspace/moved`);
    await symlink('workspace/moved', root + name);
    const { stdout, stderr, status } = start();
    expect([stdout, status]).toEqual(['', 3]);
    expect(stderr).toContain(`the image of the run is refused: ${root}${name}`);
  },
);

/** Runs the script that places the agent, with a Node that behaves as `node` does. Returns the mode of the placed Node and the output. */
async function place(node: string, mayBeReadable: boolean) {
  const moved = (text: string) => text.replace(/(?<=')\/(?:agent|target|token|secret)(?=['/])/g, `${root}$&`);
  for (const name of ['target', 'token', 'secret']) await mkdir(`${root}/${name}`, { recursive: true });
  await writeFile(`${root}/agent/node`, node, { mode: 0o755 });
  await writeFile(`${root}/secret/token`, 'ryr_token');
  const { status, stderr } = spawnSync(process.execPath, ['-e', moved(placeAgent(mayBeReadable))], {
    encoding: 'utf8',
  });
  return { status, stderr, mode: (await stat(`${root}/target/node`)).mode & 0o777 };
}

/** The kernel cannot start a program of this kind, as gVisor cannot start an unreadable one. */
const notStarted = '#!/\n';

test('the agent stays unreadable in every runtime that can start it, with a RuntimeClass too', async () => {
  expect(await place('#!/bin/sh\n', true)).toEqual({ status: 0, stderr: '', mode: 0o111 });
});

test('the agent becomes readable only if the runtime cannot start an unreadable program, and a RuntimeClass is set', async () => {
  expect(await place(notStarted, true)).toMatchObject({ status: 0, mode: 0o555 });
});

test('without a RuntimeClass, a runtime that cannot start an unreadable program is refused', async () => {
  expect(await place(notStarted, false)).toMatchObject({
    status: 3,
    stderr: expect.stringContaining('set RUNYARD_KUBERNETES_RUNTIME_CLASS'),
    mode: 0o111,
  });
});
