import type { Command } from 'commander';
import { commandGroups, type ListedCommand } from './command-list.ts';

/** The commands of the program, and their modules. */
export interface CommandList {
  /** Declares the options and subcommands of a command. A second call for the same command does nothing. */
  load(command: Command): Promise<void>;
  loadAll(): Promise<void>;
  /** Returns whether the command uses the settings of the service's unit, if systemd runs the service. */
  isForUnit(command: Command): boolean;
  /** Returns the text of a command in the command list of the help: its name, options and arguments. */
  termOf(command: Command): string;
}

/**
 * Adds all commands to the program, but only their names and descriptions. The options and subcommands of a command are declared later,
 * when the command is loaded. Then calls `onLoad` with the command.
 */
export function addCommands(program: Command, onLoad: (command: Command) => void): CommandList {
  const listed = new Map<Command, ListedCommand>();
  for (const [heading, commands] of commandGroups) {
    program.commandsGroup(heading);
    for (const each of commands) {
      const command = program.command(each.name).description(each.description);
      listed.set(each.alias === undefined ? command : command.alias(each.alias), each);
    }
  }
  const loaded = new Set<Command>();
  const list: CommandList = {
    load: async (command) => {
      const entry = listed.get(command);
      if (entry === undefined || loaded.has(command)) return;
      loaded.add(command);
      const commands = await entry.load();
      if (typeof commands === 'function') commands(command, list.loadAll);
      else for (const row of commands) row(command);
      onLoad(command);
    },
    loadAll: async () => {
      for (const command of listed.keys()) await list.load(command);
    },
    isForUnit: (command) => {
      let outermost = command;
      while (!listed.has(outermost) && outermost.parent !== null) outermost = outermost.parent;
      return listed.get(outermost)?.inUnit === true;
    },
    termOf: (command) => {
      const { usage = '', alias } = listed.get(command) ?? {};
      return `${[command.name(), ...(alias === undefined ? [] : [alias])].join('|')} ${usage}`.trimEnd();
    },
  };
  return list;
}
