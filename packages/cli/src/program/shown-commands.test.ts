/** Tests that each command of the program `runyard` that the dashboard shows is a command of the program. */
import { readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import path from 'node:path';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { asCommand, emptyDraft, requestOf } from '../../../dashboard/src/screens/new-run/request.ts';
import { addCommands } from './add-commands.ts';

/** Returns the words of a command line of a POSIX shell, until a pipe, a redirection or a comment. */
function wordsOf(line: string): string[] {
  const end = line.replaceAll(/'[^']*'/g, (text) => '_'.repeat(text.length)).search(/[|<>#]/);
  return [...line.slice(0, end < 0 ? undefined : end).matchAll(/(?:'[^']*'|[^\s'])+/g)].map(([word]) =>
    word.replaceAll("'", ''),
  );
}

/** Parses the words with the commands of the program, without executing anything. Throws if the program would refuse them. */
async function parse(words: readonly string[]): Promise<string> {
  const program = new Command('runyard');
  const list = addCommands(program, () => undefined);
  await list.loadAll();
  let reached = '';
  const prepare = (command: Command): void => {
    command.exitOverride().configureOutput({ writeErr: () => undefined, writeOut: () => undefined });
    const hasAction = Reflect.get(command, '_actionHandler') !== null;
    if (hasAction)
      command.action(() => {
        reached = command.name();
      });
    command.commands.forEach(prepare);
  };
  prepare(program);
  await program.parseAsync([...words], { from: 'user' });
  return reached;
}

/** Returns the command lines in the sources of the dashboard, each with its file. */
async function shownCommands(): Promise<(readonly [string, string])[]> {
  const folder = 'packages/dashboard/src';
  const found: (readonly [string, string])[] = [];
  for await (const file of glob('**/*.{ts,tsx}', { cwd: folder })) {
    if (file.endsWith('.test.ts')) continue;
    const source = readFileSync(path.join(folder, file), 'utf8');
    for (const [, line = ''] of source.matchAll(/bin\/runyard ((?:'[^'\n]*'|[^'"`<\n])+?)(?=["`\n]|<\/|$)/gm))
      if (!line.includes('${')) found.push([file, line.trim()]);
    for (const [, line = ''] of source.matchAll(/'bin\/runyard ([^']+)'/g)) found.push([file, line]);
  }
  return found;
}

test('the program knows each command that the dashboard shows', async () => {
  const commands = await shownCommands();
  expect(commands.length).toBeGreaterThan(20);
  const refused: string[] = [];
  for (const [file, line] of commands) {
    const reached = await parse(wordsOf(line)).catch((error: Error) => error.message);
    if (/error|\(/.test(reached) || reached === '') refused.push(`${file}: ${line}: ${reached}`);
  }
  expect(refused).toEqual([]);
});

test('the program knows the command for the request of the form for a new run', async () => {
  const draft = {
    ...emptyDraft,
    prompt: 'It is 1',
    model: 'm',
    cost: '1',
    minutes: '2',
    mode: 'plan' as const,
    isFresh: true,
  };
  const line = asCommand(draft, { path: '/agent/runs', body: requestOf(draft) }, false);
  expect(await parse(wordsOf(line.replace(/^bin\/runyard /, '')))).toBe('run');
  const rerun = asCommand(draft, { path: '/agent/runs/ID/rerun', body: requestOf(draft) }, true);
  expect(await parse(wordsOf(rerun.replace(/^bin\/runyard /, '')))).toBe('api');
});
