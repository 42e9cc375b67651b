import { Command } from 'commander';
import { expect, test } from 'vitest';
import { explainUsageErrors } from './usage-errors.ts';

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
  [['runs', 'gte'], 'runyard: bin/runyard runs has no command "gte"\nSee: bin/runyard runs --help\n'],
  [
    ['environments', 'hosts'],
    'runyard: bin/runyard environments has no command "hosts", and "list" takes no arguments\nSee: bin/runyard environments --help\n',
  ],
])('names the mistake and the help of the command: %j', (words, message) => {
  expect(errorOf(...words)).toBe(message);
});
