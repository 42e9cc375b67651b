/**
 * Tests the completions in real shells. bash must be installed; zsh and fish are tested only if they are installed.
 */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const main = path.resolve(import.meta.dirname, '../../main.ts');
const scripts: Record<string, string> = {};
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'runyard-completion-'));
  writeFileSync(path.join(folder, 'a prompt.md'), '');
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { stdout } = await promisify(execFile)(process.execPath, [main, 'completion', shell]);
    scripts[shell] = stdout;
    writeFileSync(path.join(folder, `script.${shell}`), stdout);
  }
  // The completion calls the command `runyard` to list runs. In this test, this script replaces that command.
  writeFileSync(path.join(folder, 'runyard'), '#!/bin/sh\nprintf "019d-one\\tQUEUED\\n019e-two\\tFAILED\\n"\n', {
    mode: 0o755,
  });
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Returns the completions that bash offers for the last of these words. */
function offered(...words: string[]): string[] {
  const script = `source script.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _runyard; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const output = execFileSync('bash', ['--norc', '-c', script, 'bash', ...words], { cwd: folder, encoding: 'utf8' });
  return output.split('\n').filter(Boolean);
}

test.each([
  [
    ['runyard', 'ru'],
    ['run', 'runs'],
  ],
  [
    ['runyard', 'artifacts', ''],
    ['list', 'get'],
  ],
  [['runyard', 'run', '--app'], ['--approval']],
  [
    ['runyard', 'run', '--approval', ''],
    ['ask', 'auto-approve', 'auto-deny'],
  ],
  [['runyard', 'run', '--title', 'runs', '--id'], ['--idle']],
  [['runyard', 'run', '--attach', 'a '], ['a prompt.md']],
  [['runyard', 'run', 'a'], ['a prompt.md']],
  [['runyard', 'completion', 'f'], ['fish']],
  [
    ['./runyard', 'logs', ''],
    ['latest', '019d-one', '019e-two'],
  ],
  [['./runyard', 'logs', '--follow', '019e'], ['019e-two']],
  [['runyard', 'run', '--title', ''], []],
])('the completion in bash completes %j', (words, expected) => {
  expect(offered(...words).sort()).toEqual([...expected].sort());
});

test('the completion in bash offers every command that the help lists', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [main, '--help']);
  // Commander prints this heading only if a command belongs to no group.
  expect(stdout).not.toContain('\nCommands:');
  const groups = stdout.slice(stdout.indexOf('\nRuns:'), stdout.indexOf('\nSettings are'));
  const listed = [...groups.matchAll(/^ {2}([\w-]+)/gm)].map(([, name]) => name);
  expect(listed).toContain('run');
  expect(offered('runyard', '').sort()).toEqual(listed.filter((name) => name !== 'help').sort());
});

describe('the completion of a run id that a hostile service made', () => {
  const hostile = ['$(touch made)', '`touch made`', '$HOME', '*', 'a;touch made', "a'b", '-x$(touch made)'];
  const list = path.join(tmpdir(), `runyard-hostile-${process.pid}`);
  beforeAll(() => {
    mkdirSync(list);
    const lines = [...hostile, '019d-one'].map((id) => `${id}\tQUEUED\tx\tx\ttitle`).join('\n');
    writeFileSync(path.join(list, 'list.txt'), `${lines}\n`);
    writeFileSync(path.join(list, 'runyard'), `#!/bin/sh\ncat '${path.join(list, 'list.txt')}'\n`, { mode: 0o755 });
    for (const shell of ['bash', 'zsh', 'fish'])
      writeFileSync(path.join(list, `script.${shell}`), scripts[shell] ?? '');
  });
  afterAll(() => rmSync(list, { recursive: true }));

  test('runs no command in bash, and offers only plain ids', () => {
    const script = `source script.bash; COMP_WORDS=(./runyard logs ''); COMP_CWORD=2; _runyard; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const output = execFileSync('bash', ['--norc', '-c', script], { cwd: list, encoding: 'utf8' });
    expect(output.split('\n').filter(Boolean)).toEqual(['latest', '019d-one']);
    expect(existsSync(path.join(list, 'made'))).toBe(false);
  });

  test.runIf(has('zsh'))('runs no command in zsh, and offers only plain ids', () => {
    const script = `compdef() { :; }; source script.zsh; compadd() { shift; print -rl -- "$@"; }; words=(./runyard logs ''); CURRENT=3; _runyard_runs`;
    const output = execFileSync('zsh', ['-f', '-c', script], { cwd: list, encoding: 'utf8' });
    expect(output.split('\n').filter(Boolean)).toEqual(['latest', '019d-one']);
    expect(existsSync(path.join(list, 'made'))).toBe(false);
  });

  test.runIf(has('fish'))('runs no command in fish, and offers only plain ids', () => {
    const script = `set PATH ${list} $PATH; source script.fish; complete -C 'runyard logs '`;
    const output = execFileSync('fish', ['--no-config', '-c', script], { cwd: list, encoding: 'utf8' });
    expect(
      output
        .split('\n')
        .map((line) => line.split('\t')[0])
        .filter(Boolean)
        .sort(),
    ).toEqual(['019d-one', 'latest']);
    expect(existsSync(path.join(list, 'made'))).toBe(false);
  });
});

function has(shell: string): boolean {
  return spawnSync(shell, ['--version']).status === 0;
}
describe.skipIf(!has('zsh'))('in zsh', () => {
  test('the script is read by zsh without an error', () => {
    expect(spawnSync('zsh', ['-n', 'script.zsh'], { cwd: folder, encoding: 'utf8' }).stderr).toBe('');
  });
});

describe.skipIf(!has('fish'))('in fish', () => {
  test.each([
    ['runyard ru', ['run', 'runs']],
    ['runyard run --approval ', ['ask', 'auto-approve', 'auto-deny']],
    ['runyard artifacts ', ['get', 'list']],
  ])('completes %j', (line, expected) => {
    const script = `source script.fish; complete -C '${line}'`;
    const { stdout } = spawnSync('fish', ['--no-config', '-c', script], { cwd: folder, encoding: 'utf8' });
    const found = stdout
      .split('\n')
      .filter(Boolean)
      .map((each) => each.split('\t')[0]);
    expect(found.sort()).toEqual(expected);
  });
});
