import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { readInput } from './input-file.ts';
import { jsonFrom } from './json-file.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'runyard-input-'));

test('reads a file', () => {
  writeFileSync(path.join(folder, 'a.txt'), 'hello');
  expect(readInput(path.join(folder, 'a.txt')).toString()).toBe('hello');
});

test.each([readInput, jsonFrom])('says plainly that a file is missing or a folder: %#', (read) => {
  const missing = path.join(folder, 'missing');
  expect(() => read(missing)).toThrow(`there is no file ${missing}`);
  expect(() => read(folder)).toThrow(`${folder} is a folder; name a file`);
});

const inTerminal = spawnSync('script', ['--version']).status === 0 ? test : test.skip;
inTerminal('reads a terminal until Ctrl-D, also when Node has opened it already', async () => {
  const file = path.join(import.meta.dirname, 'input-file.ts');
  const program = `process.stdin.isTTY; import(${JSON.stringify(file)}).then((m) => console.log('got', m.readInput('-').toString()));`;
  writeFileSync(path.join(folder, 'read.mjs'), program);
  const command = `${process.execPath} ${path.join(folder, 'read.mjs')}`;
  const child = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] });
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    // Typed only when the program waits for it.
    if (!shown.includes('Ctrl-D') && (shown + text).includes('Ctrl-D')) child.stdin.write('hello\n\u0004');
    shown += text;
  });
  await once(child, 'close');
  expect(shown).toContain('got hello');
});
