/**
 * The rows of a noun, such as `keys`: its commands in the order of the help. A command that sends one request is described by data: a
 * route of the contract, arguments, flags and the form of the output. `send-request.ts` sends the request. Any other command is a
 * function that declares it.
 */
import type { Client } from '@runyard/client';
import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import { type Context, processContext } from '../context/context.ts';
import { asJson, collect } from '../input/options.ts';
import type { ListColumn } from '../terminal/list.ts';
import { members } from './members.ts';

/** The facts of the schema about a member of a request. */
export interface MemberFacts {
  /** Absent: the rows have other texts. */
  readonly help?: string;
  readonly choices?: readonly string[];
  /** True: the flag can be repeated. */
  readonly isList?: true;
  /** Least value of a whole number. Absent: the value is a text. */
  readonly least?: number;
}

/** A command of a noun. `open` returns the context of a command when it runs. */
export type Row = (noun: Command, open?: () => Context) => void;

/** The row of a command that sends one request, with the members of the request that its flags set. */
export type RouteRow = Row & { readonly route: string; readonly members: readonly Flag[] };

export type RowRoute = Exclude<keyof Client, `stream${string}`>;
type Input<R extends RowRoute> = NonNullable<Parameters<Client[R]>[0]>;
type Part<R extends RowRoute, P extends string> = P extends keyof Input<R> ? NonNullable<Input<R>[P]> : never;
type Member<R extends RowRoute> = (keyof Part<R, 'query'> | keyof Part<R, 'body'>) & string;
export type Answer<R extends RowRoute> = Awaited<ReturnType<Client[R]>>;

/** Values of the parameters of the path and of the arguments, by name. */
export type Given = Readonly<Record<string, string>>;

/** The query or the body of a request. */
export type Members = Readonly<Record<string, unknown>>;

/** The call of a command, for `complete`. `options`: all options of the command, in the names of commander. */
interface Call {
  readonly client: Client;
  readonly params: Given;
  readonly options: Readonly<Record<string, unknown>>;
}

interface RowArgument {
  /** `<name>`, `[name]` or `<names...>`. */
  readonly usage: string;
  readonly help?: string;
  readonly choices?: readonly string[];
  /** Member of the body that the argument sets; `*`: the whole body. Absent: the argument is the next parameter of the path. */
  readonly member?: string;
  /** Returns the value of the member. Default: the text itself. */
  readonly read?: (text: string) => unknown;
  /** Finds the thing that a person names. Returns the next parameter of the path, or several parameters by name. */
  readonly find?: (client: Client, text: string) => Promise<string | Given>;
}

/** A flag that sets a member. Help and choices come from the schema of the member, and the row can replace them. */
export interface Flag<M extends string = string> {
  readonly member: M;
  readonly help?: string;
  readonly default?: string;
  readonly isRequired?: true;
  /** Value of the member, for a flag without a value. A flag `--no-…` sets null. */
  readonly value?: unknown;
  /** Returns the value of the member for the value of the flag, which is undefined if the flag is absent. Undefined: the member is absent. */
  readonly read?: (value: never) => unknown;
}

/** A member of the answer that has the rows of the list, and the columns that show them. */
interface RowList<R extends RowRoute, K extends keyof Answer<R>> {
  readonly of: K;
  readonly columns: readonly ListColumn<Answer<R>[K] extends readonly (infer T)[] ? T : never>[];
  /** True: reads all pages. */
  readonly allPages?: true;
  /** Message for a person if the list is empty. */
  readonly none: string | ((given: Given) => string);
}

/** Arguments, flags and output of a command that sends one request. */
export interface RequestCommand<R extends RowRoute, K extends keyof Answer<R> = never> {
  /** True: the noun without a word is this command. */
  readonly isDefault?: true;
  /** In the order of the command line: first those for the path. */
  readonly arguments?: readonly RowArgument[];
  /** Maps the flag, such as `--actor <uid>`, to the member that it sets: a parameter of the query or a member of the body. */
  readonly flags?: Readonly<Record<string, Member<R> | Flag<Member<R>>>>;
  /** Declares options that are not members of the request; `complete` reads them. */
  readonly declare?: (command: Command) => void;
  /** Message of the usage error if no flag is given. Absent: the flags are optional. */
  readonly needsFlag?: string;
  /** Members of the body with fixed values. */
  readonly fixed?: { readonly [M in Member<R>]?: unknown };
  /** Checks the members that arguments and flags have set, and returns them with members that follow from others. */
  readonly complete?: (members: Members, call: Call) => Members | Promise<Members>;
  /** Returns parameters of the path that no argument gives. */
  readonly params?: (client: Client) => Promise<Given>;
  /** True: the request has no API key. */
  readonly anonymous?: true;
  /** Text below the help. */
  readonly helpBelow?: string;
  /** Prints the answer as a list, or as JSON with `--json`. */
  readonly list?: RowList<R, K>;
  /** Lines to print. Without `list` and `lines`, the answer is printed as JSON. */
  readonly lines?: (answer: Answer<R>, given: Given) => string | readonly string[];
  /** True: the command has the option `--json`, as a list always has. */
  readonly orJson?: true;
  /** True: `notes` appear with `--json` too. */
  readonly notesWithJson?: true;
  /** Lines for the person, on standard error. */
  readonly notes?: (answer: Answer<R>, given: Given) => string | readonly string[];
}

/** A command with its route. */
export interface RoutedCommand<R extends RowRoute, K extends keyof Answer<R>> extends RequestCommand<R, K> {
  readonly route: R;
}

/**
 * Returns the row of a command that sends one request. `words`: the words after the noun, such as `guests remove`; empty if the noun itself
 * is the command, whose help is in `command-list.ts`.
 */
export function request<R extends RowRoute, K extends keyof Answer<R> = never>(
  route: R,
  words: string,
  about: string,
  described: RequestCommand<R, K> = {},
): RouteRow {
  const { flags = {} } = described;
  const row: Row = (noun, open = processContext) => {
    const command = commandAt(noun, words, described.isDefault === true);
    if (about !== '') command.description(about);
    declare(command, { ...described, route }, open);
  };
  return Object.assign(row, { route, members: Object.values(flags).map((flag) => flagOf(flag)) });
}

/** Returns a row that only describes a group of commands, such as `environments guests`. */
export const group =
  (name: string, about: string): Row =>
  (noun) =>
    void noun.command(name).description(about);

export const flagOf = <M extends string>(flag: M | Flag<M>): Flag<M> =>
  typeof flag === 'string' ? { member: flag } : flag;

function declare<R extends RowRoute, K extends keyof Answer<R>>(
  command: Command,
  described: RoutedCommand<R, K>,
  open: () => Context,
): void {
  const { route, arguments: given = [], flags = {}, helpBelow, list, orJson } = described;
  for (const { usage, help, choices } of given) {
    const argument = new Argument(usage, help);
    command.addArgument(choices === undefined ? argument : argument.choices(choices));
  }
  described.declare?.(command);
  const options = Object.entries<Member<R> | Flag<Member<R>>>(flags).map(([text, flag]) => {
    const option = optionOf(route, text, flagOf(flag));
    command.addOption(option);
    return { name: option.attributeName(), flag: flagOf(flag) };
  });
  if (list !== undefined || orJson) command.option(...asJson);
  if (helpBelow !== undefined) command.addHelpText('after', helpBelow);
  command.action(async (...all: unknown[]) => {
    const values = all.at(-2) as Readonly<Record<string, unknown>>;
    // Loads the client only now, because the help needs no client.
    const { sendRequest } = await import('./send-request.ts');
    await sendRequest(open(), described, {
      texts: all.slice(0, given.length) as (string | readonly string[] | undefined)[],
      flags: options.map(({ name, flag }) => ({ flag, value: values[name] })),
      options: values,
      json: values.json === true,
    });
  });
}

function commandAt(noun: Command, words: string, isDefault: boolean): Command {
  if (words === '') return noun;
  const names = words.split(' ');
  const last = names.pop() ?? '';
  const parent = names.reduce((at, name) => at.commands.find((each) => each.name() === name) ?? at.command(name), noun);
  return parent.command(last, { isDefault });
}

function optionOf(route: string, text: string, flag: Flag): Option {
  const facts: MemberFacts | undefined = members[route]?.[flag.member];
  if (facts === undefined) throw new Error(`members.ts has no ${flag.member} of ${route}: run bin/generate`);
  const option = new Option(text, flag.help ?? facts.help);
  if (flag.default !== undefined) option.default(flag.default);
  if (flag.isRequired) option.makeOptionMandatory();
  if (flag.value !== undefined || flag.read !== undefined) return option;
  const { choices, isList, least } = facts;
  if (choices !== undefined) option.choices(choices).argParser((text: string) => choiceFrom(text, choices));
  else if (isList) option.argParser(collect);
  else if (least !== undefined) option.argParser((text: string) => wholeNumberFrom(text, least));
  return option;
}

/** Returns the choice that a person typed, in small or capital letters. */
function choiceFrom(text: string, choices: readonly string[]): string {
  const choice = choices.find((each) => each.toLowerCase() === text.toLowerCase());
  if (choice === undefined) throw new InvalidArgumentError(`Allowed choices are ${choices.join(', ')}.`);
  return choice;
}

function wholeNumberFrom(text: string, least: number): number {
  const number = Number(text);
  if (!/^\d{1,9}$/.test(text) || number < least)
    throw new InvalidArgumentError(`It must be a whole number${least > 0 ? ` from ${least}` : ''}.`);
  return number;
}
