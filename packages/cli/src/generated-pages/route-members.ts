import { type RouteName, routes } from '@runyard/contract/routes';
import type { Route } from '@runyard/contract/wire/route';
import { z } from 'zod';
import { commandGroups } from '../program/command-list.ts';
import type { MemberFacts, RouteRow, Row } from '../route-commands/row.ts';

/** Members of a JSON schema that the help of a flag needs. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly items?: Schema;
  readonly minimum?: number;
  readonly default?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly $defs?: Readonly<Record<string, Schema>>;
}

/** Returns the text of `members.ts`: for each route, the members that flags of commands set, with help and choices from the schema. */
export async function renderMembers(): Promise<string> {
  const rows = (await Promise.all(commandGroups.flatMap(([, commands]) => commands).map(({ load }) => load()))).flatMap(
    (loaded) => (typeof loaded === 'function' ? [] : loaded),
  );
  const ofRoutes = rows.filter(isRouteRow).filter(({ members }) => members.length > 0);
  const lines = ofRoutes
    .toSorted((one, other) => one.route.localeCompare(other.route))
    .map(({ route, members }) => {
      const names = [...new Set(members.map(({ member }) => member))];
      const facts = names.map((name) => {
        const { help, ...others } = factsOf(route, name);
        const isUsed = members.some((flag) => flag.member === name && flag.help === undefined);
        return [name, isUsed ? { help, ...others } : others];
      });
      return `  ${route}: ${JSON.stringify(Object.fromEntries(facts))},`;
    });
  return `// Written by bin/generate from the schemas of the contract.
import type { MemberFacts } from './row.ts';

// biome-ignore format: one line a route
export const members: Readonly<Record<string, Readonly<Record<string, MemberFacts>>>> = {
${lines.join('\n')}
};
`;
}

const isRouteRow = (row: Row): row is RouteRow => 'route' in row;

function factsOf(name: string, member: string): MemberFacts {
  const route: Route = routes[name as RouteName];
  const schema = /^(?:GET|DELETE)$/.test(route.method) ? route.query : route.body;
  const whole = z.toJSONSchema(schema ?? z.never(), { io: 'input', unrepresentable: 'any' }) as Schema;
  const resolve = (each: Schema): Schema => {
    const target = each.$ref === undefined ? undefined : whole.$defs?.[each.$ref.replace('#/$defs/', '')];
    return target === undefined ? each : { ...target, ...each };
  };
  const found = resolve(whole).properties?.[member];
  if (found === undefined) throw new Error(`${name} has no member ${member}`);
  const outer = resolve(found);
  const value = resolve(outer.anyOf?.find(({ type }) => type !== 'null') ?? outer);
  const choices = value.enum ?? (value.items && resolve(value.items).enum);
  return {
    help: helpOf(outer.description ?? value.description ?? '', outer.default),
    ...(choices === undefined ? {} : { choices }),
    ...(value.type === 'array' ? { isList: true } : {}),
    ...(value.type === 'integer' ? { least: Math.max(0, value.minimum ?? 0) } : {}),
  };
}

/** Returns the description in the form of a help: in small letters, and with the words that a person types. */
function helpOf(description: string, byDefault: unknown): string {
  const help = description
    .replaceAll('`', '')
    .replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase())
    .replace(/^(\w+) of a page\b/, 'at most this many $1')
    .replace(/[;.] (?:[Aa]bsent|Default): ([^;.]+)$/, ' (default: $1)')
    .replace(/\.$/, '');
  return typeof byDefault === 'number' ? `${help} (default: ${byDefault})` : help;
}
