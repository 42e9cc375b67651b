import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { removeFoldersOfDeadRuns } from './support/temporary-folder.ts';

const module = fileURLToPath(new URL('./support/temporary-folder.ts', import.meta.url));

it('a test run removes the folder of a killed test run, but not the folder of another test run that still runs', async () => {
  const place = await mkdtemp(path.join(tmpdir(), 'runs-'));
  const program = `await (await import(${JSON.stringify(module)})).setup(); console.log('made'); setInterval(() => {}, 1000);`;
  const run = spawn(process.execPath, ['--input-type=module', '-e', program], {
    env: { ...process.env, TMPDIR: place },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(run, 'exit');
  await once(run.stdout, 'data');
  await removeFoldersOfDeadRuns(place);
  expect(await readdir(place)).toHaveLength(1);
  run.kill('SIGKILL');
  await exited;
  await removeFoldersOfDeadRuns(place);
  expect(await readdir(place)).toEqual([]);
  await rm(place, { recursive: true });
});
