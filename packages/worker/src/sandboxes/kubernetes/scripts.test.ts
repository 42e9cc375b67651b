import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { places, starter } from './scripts.ts';

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
