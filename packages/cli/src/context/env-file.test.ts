import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { addEnvFile } from './env-file.ts';

const file = path.join(mkdtempSync(path.join(tmpdir(), 'runyard-env-file-')), 'service.env');
writeFileSync(file, '# settings\nRUNYARD_PORT=4181\nRUNYARD_HOST="::1"\n', { mode: 0o600 });

test('a file with settings adds variables, and does not change those that are set', () => {
  const env: Record<string, string | undefined> = { RUNYARD_PORT: '4999' };
  addEnvFile(file, env);
  expect(env).toEqual({ RUNYARD_PORT: '4999', RUNYARD_HOST: '::1' });
});

test.each([0o620, 0o602, 0o666])('a file that other users can change is refused (mode %o)', (mode) => {
  chmodSync(file, mode);
  const env = {};
  expect(() => addEnvFile(file, env)).toThrow('other users can change this file');
  expect(env).toEqual({});
});

test('a missing file is named', () => {
  expect(() => addEnvFile(`${file}.none`, {})).toThrow('--env-file cannot be read: ENOENT');
});
