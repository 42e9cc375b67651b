import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { jsonFrom, readInput } from './input-file.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'runyard-input-'));

test('readInput reads a file', () => {
  writeFileSync(path.join(folder, 'a.txt'), 'hello');
  expect(readInput(path.join(folder, 'a.txt')).toString()).toBe('hello');
});

test.each([readInput, jsonFrom])(
  'the error of the function %o says that the file is missing or is a folder',
  (read) => {
    const missing = path.join(folder, 'missing');
    expect(() => read(missing)).toThrow(`there is no file ${missing}`);
    expect(() => read(folder)).toThrow(`${folder} is a folder; name a file`);
  },
);

/** A program that calls `readInput('-')` after Node has opened standard input. */
const reader = path.join(folder, 'read.mjs');
writeFileSync(
  reader,
  `process.stdin.isTTY;
   const { readInput } = await import(${JSON.stringify(path.join(import.meta.dirname, 'input-file.ts'))});
   process.stderr.write('ready');
   console.log('got', readInput('-').toString());`,
);

test('readInput waits for the data of a pipe, even if the pipe is non-blocking', async () => {
  const child = spawn(process.execPath, [reader], { stdio: ['pipe', 'pipe', 'pipe'] });
  child.stderr.once('data', () => {
    child.stdin.write('hel');
    setImmediate(() => child.stdin.end('lo'));
  });
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  await once(child, 'close');
  expect(shown).toBe('got hello\n');
});

const inTerminal = spawnSync('script', ['--version']).status === 0 ? test : test.skip;
inTerminal('reads a terminal until Ctrl-D, also when Node has opened it already', async () => {
  const command = `${process.execPath} ${reader}`;
  const child = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] });
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    // Types the text only when the program has shown that it waits for input.
    if (!shown.includes('Ctrl-D') && (shown + text).includes('Ctrl-D')) child.stdin.write('hello\n\u0004');
    shown += text;
  });
  await once(child, 'close');
  expect(shown).toContain('got hello');
});
