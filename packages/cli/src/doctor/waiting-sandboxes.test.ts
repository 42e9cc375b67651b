import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { parseSettings } from '@runyard/contract/settings/settings';
import { keepWaitingFile } from '@runyard/worker/waiting-file';
import { expect, test } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { dataFolder } from '../data-folder/installation.ts';
import { checkWaitingSandboxes } from './waiting-sandboxes.ts';

const dataDir = newFolder();
await mkdir(path.join(dataDir, 'worker'));
const env = { RUNYARD_DATA_DIR: dataDir };
const parsed = parseSettings(env);
if (!parsed.ok) throw new Error(parsed.problems.join());
const folder = dataFolder(parsed.settings, env);

test.each([
  ['good', { wanted: 1, ready: 1, taken: 4, failed: 0 }, '1 of 1 ready; 4 taken and 0 failed since '],
  ['fact', { wanted: 0, ready: 0, taken: 0, failed: 0 }, '0 of 0 ready'],
  ['fact', { wanted: 2, ready: 1, taken: 0, failed: 1, failure: 'it ended' }, 'last failure: it ended'],
  ['note', { wanted: 2, ready: 0, taken: 0, failed: 9, failure: 'no \u001b[31mdisk' }, 'last failure: no disk'],
])('doctor shows the pool of the running worker as %s', (level, pool, detail) => {
  const stop = keepWaitingFile(path.join(dataDir, 'worker'), () => pool, console.error);
  expect(checkWaitingSandboxes({ folder })).toMatchObject([
    { name: 'warm sandboxes', level, detail: expect.stringContaining(detail) },
  ]);
  stop();
  expect(checkWaitingSandboxes({ folder })).toEqual([]);
});
