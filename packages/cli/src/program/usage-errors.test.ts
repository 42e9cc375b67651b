import { Command } from 'commander';
import { expect, test } from 'vitest';
import { explainUsageErrors, showHelpOf } from './usage-errors.ts';

function errorOf(...words: string[]): string {
  let printed = '';
  const program = new Command('runyard').exitOverride().configureOutput({
    writeErr: (text) => {
      printed += text;
    },
  });
  program
    .command('runs')
    .option('--json')
    .action(() => undefined)
    .command('get')
    .argument('<run>');
  program
    .command('environments')
    .command('list', { isDefault: true })
    .action(() => undefined);
  explainUsageErrors(program);
  expect(() => program.parse(words, { from: 'user' })).toThrow();
  return printed;
}

test.each([
  [['rnus'], "runyard: unknown command 'rnus'\n(Did you mean runs?)\nSee: bin/runyard --help\n"],
  [['runs', '--jsn'], "runyard: unknown option '--jsn'\n(Did you mean --json?)\nSee: bin/runyard runs --help\n"],
  [['runs', 'get'], "runyard: missing required argument 'run'\nSee: bin/runyard runs get --help\n"],
  [
    ['runs', 'gte'],
    'runyard: bin/runyard runs has no command "gte"; its commands are get\nSee: bin/runyard runs --help\n',
  ],
  [
    ['environments', 'hosts'],
    'runyard: bin/runyard environments has no command "hosts", and "list" takes no arguments; its commands are list\nSee: bin/runyard environments --help\n',
  ],
])('the usage error for %j names the mistake and the help of the command', (words, message) => {
  expect(errorOf(...words)).toBe(message);
});

function helpOf(...names: string[]): string {
  let printed = '';
  const write = (text: string) => {
    printed += text;
  };
  const program = new Command('runyard').exitOverride().configureOutput({ writeOut: write, writeErr: write });
  program.command('runs').description('list runs').command('get').description('show one run');
  explainUsageErrors(program);
  try {
    showHelpOf(program, names);
  } catch (error) {
    expect(error).toMatchObject({ exitCode: 1 });
  }
  return printed;
}

test.each([
  [[], 'Usage: runyard [options]'],
  [['runs'], 'Usage: runyard runs [options]'],
  [['runs', 'get'], 'Usage: runyard runs get [options]'],
  [['foo'], "runyard: unknown command 'foo'\nSee: bin/runyard --help\n"],
  [
    ['runs', 'foo'],
    'runyard: bin/runyard runs has no command "foo"; its commands are get\nSee: bin/runyard runs --help\n',
  ],
  [['runs', 'get', 'foo'], 'runyard: bin/runyard runs get has no command "foo"; it has no commands\n'],
])('showHelpOf shows the help of %j', (names, expected) => {
  expect(helpOf(...names)).toContain(expected);
});
