import { Command, Help } from 'commander';
import { expect, test } from 'vitest';
import { addCommands, type CommandList } from './add-commands.ts';

const program = new Command('runyard');
const loaded: string[] = [];
const list: CommandList = addCommands(program, (command) => loaded.push(command.name()));
const usages: ReadonlyMap<Command, string> = new Map(
  program.commands.map((command) => [command, list.termOf(command)]),
);
await list.loadAll();

test('for each command, the command list shows the options and arguments that the module of the command declares', () => {
  const help = new Help();
  for (const command of program.commands) expect(usages.get(command)).toBe(help.subcommandTerm(command));
});

test('loadAll loads each command once, and each command has an action', async () => {
  await list.loadAll();
  expect(loaded).toEqual(program.commands.map((command) => command.name()));
  expect(loaded.length).toBeGreaterThan(30);
  for (const command of program.commands)
    expect(command.commands.length > 0 || Reflect.get(command, '_actionHandler') != null, command.name()).toBe(true);
});
