import { mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { makeFolders } from './make-folders.ts';

const outer = mkdtempSync(path.join(tmpdir(), 'runyard-folders-'));
const folderAt = (name: string) => ({ path: path.join(outer, name), logs: path.join(outer, name, 'logs') });

test('makeFolders makes folders that only their owner can read', () => {
  makeFolders(folderAt('new/inner'));
  expect(statSync(folderAt('new/inner').logs).mode & 0o777).toBe(0o700);
});

test.each(['file', 'file/below'])(
  'the error of makeFolders names the setting if a file is in the place of the folder %s',
  (name) => {
    writeFileSync(path.join(outer, 'file'), '');
    expect(() => makeFolders(folderAt(name))).toThrow(
      `cannot make the data folder ${path.join(outer, name)}: a file is in its place. RUNYARD_DATA_DIR names another one`,
    );
  },
);
