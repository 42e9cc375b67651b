import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { thisProcess } from '@runyard/system/process-identity';
import { expect, onTestFinished, test } from 'vitest';
import { apiKey, createContext } from './context.ts';

test.each([
  ['http://127.0.0.1:4180', 'key of the folder'],
  ['http://localhost:4180', 'key of the folder'],
  ['http://[::1]:4180', 'key of the folder'],
  ['http://127.0.0.1.evil.example:4180', null],
  ['http://localhost.evil.example:4180', null],
  ['http://127.0.0.1:4181', null],
  ['https://127.0.0.1:4180', null],
])('the command with RUNYARD_BASE_URL=%s sends the key %s', (origin, expected) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'runyard-context-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(path.join(folder, 'bootstrap-key'), 'key of the folder\n');
  const service = { ...thisProcess(), base_url: 'http://127.0.0.1:4180' };
  writeFileSync(path.join(folder, 'service.json'), JSON.stringify(service));
  expect(apiKey(createContext({ RUNYARD_DATA_DIR: folder, RUNYARD_BASE_URL: origin }))).toBe(expected);
});
