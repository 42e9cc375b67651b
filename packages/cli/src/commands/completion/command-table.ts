import type { Argument, Command, Option } from 'commander';

/** The kind of value that an argument or option accepts. */
export type Value =
  | { readonly kind: 'choices'; readonly choices: readonly string[] }
  | { readonly kind: 'file' }
  | { readonly kind: 'run' }
  /** Any text, for which shells offer no completions. */
  | { readonly kind: 'text' };

export interface OptionEntry {
  readonly names: readonly string[];
  readonly description: string;
  /** Kind of the value. Absent if the option has no value. */
  readonly value?: Value;
}

/** One command, with the words that can follow it. */
export interface CommandEntry {
  /** The words after `runyard`, each with a slash before it: `/runs/get` for `runyard runs get`. Empty for `runyard` itself. */
  readonly path: string;
  readonly subcommands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly OptionEntry[];
  readonly values: readonly Value[];
}

/** Returns the table of all commands and options, which is made from the same definitions that parse the arguments. */
export function commandTable(program: Command, path = ''): CommandEntry[] {
  const subcommands = program.commands.filter((command) => command.name() !== 'help');
  const entry: CommandEntry = {
    path,
    subcommands: subcommands.map((command) => ({ name: command.name(), description: command.description() })),
    options: [...program.options.map(optionEntry), { names: ['--help'], description: 'show help' }],
    values: program.registeredArguments.map(valueOfArgument),
  };
  return [entry, ...subcommands.flatMap((command) => commandTable(command, `${path}/${command.name()}`))];
}

function optionEntry(option: Option): OptionEntry {
  const names = [option.short, option.long].filter((name) => name !== undefined && name !== null);
  const { description } = option;
  if (!option.required && !option.optional) return { names, description };
  const placeholder = /[<[]([\w-]+)/.exec(option.flags)?.[1] ?? '';
  return { names, description, value: valueNamed(placeholder, option.argChoices) };
}

const valueOfArgument = (argument: Argument): Value => valueNamed(argument.name(), argument.argChoices);

function valueNamed(name: string, choices: readonly string[] | undefined): Value {
  if (choices) return { kind: 'choices', choices };
  if (name === 'run' || name === 'runs') return { kind: 'run' };
  if (name === 'file' || name === 'prompt') return { kind: 'file' };
  return { kind: 'text' };
}
