/**
 * A tool is described as data: an operation of the contract with another name. The operation's schemas become the schema of the tool's
 * arguments.
 */

import { type RouteName, routes } from '@runyard/contract/routes';
import { apiPrefix, type Route } from '@runyard/contract/wire/route';
import { z } from 'zod';
import type { Fault } from '../../platform/fault.ts';

export interface Tool {
  readonly name: string;
  readonly title: string;
  /** Tells the model the effect of the tool and when to use it. */
  readonly description: string;
  /** The operation of the API that the tool calls with the arguments. The operation's route decides who may call the tool, and checks the
   * arguments. */
  readonly operation: RouteName;
  /** Members of the operation's query and body that are arguments of the
   * tool. Default: all members of the query, and no member of the body. */
  readonly members?: readonly string[];
  /** Members of `config` that the tool's schema names. The operation accepts the other members of `config` too. */
  readonly configMembers?: readonly string[];
  /** For each argument whose member has another name in the operation: the name of this member. */
  readonly renamed?: Readonly<Record<string, string>>;
  /** Members of the body that are always the same. */
  readonly fixed?: Json;
  /** Arguments that the tool requires although the operation does not. */
  readonly required?: readonly string[];
  /** Arguments that the service handles itself, as members of a JSON Schema. */
  readonly own?: Readonly<Record<string, Json>>;
  /**
   * True: the caller may name a task with `factory_task_uid`, `reference` or `run_id` instead of the path parameters. The service finds the
   * task, and fills the path parameters with its `factory_uid`, its `task_uid` and the id of its current run.
   */
  readonly findsTask?: true;
  readonly effect: 'reads' | 'adds' | 'ends';
  /** True: the answer has text of runs, repositories or other systems. */
  readonly untrusted?: true;
  /** Maximum number of characters of one string in the answer. */
  readonly maxText?: number;
  /** How the service changes the operation's answer for the tool. Default: the tool returns the answer of the operation unchanged. */
  readonly handling?: 'wait' | 'read_file' | 'newest_messages' | 'hand_back' | 'start_working';
}

export type Json = Readonly<Record<string, unknown>>;

export interface OperationRequest {
  readonly method: Route['method'];
  /** Path with the prefix of the API, and the query. */
  readonly url: string;
  readonly body?: Json;
  readonly idempotencyKey?: string;
}

const idempotencyKey: Json = {
  type: 'string',
  pattern: '^[\\x21-\\x7e]{1,255}$',
  description: 'A text of yours. A repeated call with the same key and arguments within 24 h is done once',
};

/** `runId` → `run_id`: path parameters have the names of the API's members. */
const snakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const refPrefix = '#/$defs/';

/** A converted schema, and the named schemas in it. */
interface Converted {
  readonly root: Json;
  readonly definitions: ReadonlyMap<string, Json>;
}

/** Each schema is converted once, because the larger ones take milliseconds. */
const converted = new WeakMap<z.ZodType, Converted>();

/** Converts a schema of the contract. */
function convert(schema: z.ZodType): Converted {
  const known = converted.get(schema);
  if (known) return known;
  const { $schema, $defs, ...root } = z.toJSONSchema(schema, {
    io: 'input',
    target: 'draft-2020-12',
    override: ({ jsonSchema }) => {
      delete jsonSchema.id;
      // The format describes the value well enough, and the pattern of zod is very long.
      if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
    },
  });
  const made = { root: root as Json, definitions: new Map(Object.entries(($defs ?? {}) as Record<string, Json>)) };
  converted.set(schema, made);
  return made;
}

const resolve = (schema: Json, definitions: ReadonlyMap<string, Json>): Json => {
  const { $ref } = schema;
  return typeof $ref === 'string' ? resolve(definitions.get($ref.slice(refPrefix.length)) ?? {}, definitions) : schema;
};

const propertiesOf = (schema: Json): Readonly<Record<string, Json>> =>
  (schema.properties ?? {}) as Record<string, Json>;

/** Returns the definitions that the schemas refer to, directly or through others. */
function reachable(schemas: unknown, definitions: ReadonlyMap<string, Json>): Record<string, Json> {
  const found: Record<string, Json> = {};
  const visit = (value: unknown): void => {
    for (const [, name] of JSON.stringify(value).matchAll(/"#\/\$defs\/([^"]+)"/g)) {
      const definition = name === undefined || name in found ? undefined : definitions.get(name);
      if (name === undefined || !definition) continue;
      found[name] = definition;
      visit(definition);
    }
  };
  visit(schemas);
  return found;
}

/** The arguments of a tool, each with the part of the request that it becomes. */
interface Parts {
  readonly path: ReadonlyMap<string, string>;
  readonly query: ReadonlyMap<string, string>;
  readonly body: ReadonlyMap<string, string>;
}

const routeOf = (tool: Tool): Route => routes[tool.operation];

const membersOf = (schema: z.ZodType | undefined): string[] =>
  schema ? Object.keys(propertiesOf(withoutRef(convert(schema)))) : [];

const withoutRef = ({ root, definitions }: Converted): Json => resolve(root, definitions);

function partsOf(tool: Tool): Parts {
  const route = routeOf(tool);
  const argumentOf = new Map(Object.entries(tool.renamed ?? {}).map(([argument, member]) => [member, argument]));
  const named = (members: readonly string[]) => new Map(members.map((name) => [argumentOf.get(name) ?? name, name]));
  const path = Object.keys(route.params?.shape ?? {});
  return {
    path: new Map(path.map((name) => [argumentOf.get(name) ?? snakeCase(name), name])),
    query: named(membersOf(route.query).filter((name) => tool.members?.includes(name) ?? true)),
    body: named(membersOf(route.body).filter((name) => tool.members?.includes(name) ?? false)),
  };
}

/** Returns the arguments that are path parameters of the operation. */
export const pathArguments = (tool: Tool): readonly string[] => [...partsOf(tool).path.keys()];

/** Arguments that name a task. One of them is enough. */
export const namesOfTask: Readonly<Record<string, Json>> = {
  factory_task_uid: { type: 'string', description: 'UID of the task' },
  reference: {
    type: 'string',
    description: 'Page of the task, its ticket, or a pull request or branch of its runs',
  },
  run_id: { type: 'string', description: 'Id of a run of the task' },
};

/** Returns the JSON Schema of a tool's arguments. */
export function argumentsSchema(tool: Tool): Json {
  const route = routeOf(tool);
  const { path, query, body } = partsOf(tool);
  const definitions = new Map<string, Json>();
  const properties: Record<string, Json> = {};
  const required = new Set(tool.required);
  for (const [schema, members] of [
    [route.params, path],
    [route.query, query],
    [route.body, body],
  ] as const) {
    if (!schema) continue;
    const found = convert(schema);
    for (const [name, definition] of found.definitions) definitions.set(name, definition);
    const whole = withoutRef(found);
    for (const [argument, member] of members) {
      properties[argument] = propertiesOf(whole)[member] ?? {};
      if ((whole.required as readonly string[] | undefined)?.includes(member)) required.add(argument);
    }
  }
  const { config } = properties;
  if (config && tool.configMembers) {
    const members = Object.entries(propertiesOf(resolve(config, definitions)));
    properties.config = {
      type: 'object',
      description: 'Configuration of the run. Other members of the API are accepted too',
      properties: Object.fromEntries(members.filter(([name]) => tool.configMembers?.includes(name))),
    };
  }
  if (tool.findsTask) Object.assign(properties, namesOfTask);
  if (tool.findsTask || tool.handling === 'hand_back') for (const name of path.keys()) required.delete(name);
  Object.assign(properties, tool.own, route.once === undefined ? {} : { idempotency_key: idempotencyKey });
  const $defs = reachable(properties, definitions);
  return {
    type: 'object',
    properties,
    ...(required.size > 0 ? { required: [...required] } : {}),
    additionalProperties: false,
    ...(Object.keys($defs).length > 0 ? { $defs } : {}),
  };
}

/** Returns the schema of a member without its own members, so that the list of tools stays small. */
function shallow(member: Json, definitions: ReadonlyMap<string, Json>): Json {
  const { type, description } = resolve(member, definitions);
  return { ...(typeof type === 'string' ? { type } : {}), ...(typeof description === 'string' ? { description } : {}) };
}

/** Returns the JSON Schema of a tool's answer: the members of the answer of its operation, or `result` if that answer is no object. */
export function answerSchema(tool: Tool): Json {
  const { schema } = routeOf(tool).answer;
  if (!schema) return { type: 'object' };
  const found = convert(schema);
  const whole = withoutRef(found);
  if (whole.type !== undefined && whole.type !== 'object')
    return { type: 'object', properties: { result: shallow(found.root, found.definitions) }, required: ['result'] };
  const members = Object.entries(propertiesOf(whole)).map(([name, each]) => [name, shallow(each, found.definitions)]);
  return {
    type: 'object',
    properties: Object.fromEntries(members),
    // A task that is handed back has another answer.
    ...(Array.isArray(whole.required) && tool.handling !== 'hand_back' ? { required: whole.required } : {}),
  };
}

/** Writes a value into a query in the form that the API reads: repeated names for a list, `name[key]=value` for an object. */
function* queryPairs(name: string, value: unknown): Generator<[string, string]> {
  if (Array.isArray(value)) for (const each of value) yield [name, textOf(each)];
  else if (typeof value === 'object' && value !== null)
    for (const [key, each] of Object.entries(value)) yield [`${name}[${key}]`, textOf(each)];
  else yield [name, textOf(value)];
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/**
 * Returns the function that makes a request to the operation from arguments. If the arguments have faults that the operation would not
 * find, the function returns these faults instead.
 */
export function requestMaker(tool: Tool): (given: Json) => OperationRequest | readonly Fault[] {
  const route = routeOf(tool);
  const { path, query, body } = partsOf(tool);
  const own = [
    ...Object.keys(tool.own ?? {}),
    ...(tool.findsTask ? Object.keys(namesOfTask) : []),
    ...(route.once === undefined ? [] : ['idempotency_key']),
  ];
  const known = [...path.keys(), ...query.keys(), ...body.keys(), ...own];

  return (given) => {
    const faults: Fault[] = [];
    for (const name of Object.keys(given)
      .filter((each) => !known.includes(each))
      .slice(0, 20))
      faults.push({ path: name, message: `is no argument of ${tool.name}, which takes ${known.join(', ') || 'none'}` });
    for (const name of new Set([...path.keys(), ...(tool.required ?? [])]))
      if (given[name] === undefined || given[name] === '') faults.push({ path: name, message: 'is required' });
    for (const name of [...path.keys(), 'idempotency_key'])
      if (given[name] !== undefined && typeof given[name] !== 'string')
        faults.push({ path: name, message: 'must be a string' });
    if (faults.length > 0) return faults;

    let url: string = apiPrefix + route.path;
    for (const [argument, member] of path)
      url = url.replace(`{${member}}`, encodeURIComponent(String(given[argument])));
    const pairs = [...query].flatMap(([argument, member]) =>
      given[argument] === undefined ? [] : [...queryPairs(member, given[argument])],
    );
    if (pairs.length > 0) url += `?${new URLSearchParams(pairs)}`;
    const sent = [...body].filter(([argument]) => given[argument] !== undefined);
    return {
      method: route.method,
      url,
      ...(route.body
        ? {
            body: { ...Object.fromEntries(sent.map(([argument, member]) => [member, given[argument]])), ...tool.fixed },
          }
        : {}),
      ...(typeof given.idempotency_key === 'string' && route.once !== undefined
        ? { idempotencyKey: given.idempotency_key }
        : {}),
    };
  };
}
