/** Writes the example requests of the API reference as shell commands. */

import { type Example, exampleIds } from '../wire/example.ts';
import { apiPrefix, type Route } from '../wire/route.ts';

/** Converts a member of a path, such as `runId`, to a shell variable, such as `RUN_ID`. */
const variableOf = (member: string): string => member.replaceAll(/([A-Z])/g, '_$1').toUpperCase();

/** Returns the shell variable for the path parameter `uid`, which is the id of a key or of an environment. */
const ownVariable = (path: string): string => (path.startsWith('/keys') ? 'KEY_UID' : 'ENVIRONMENT_UID');

/** Returns the shell variable for a member of a request's path. */
function pathVariable(path: string, member: string): string {
  return member === 'uid' ? ownVariable(path) : variableOf(member);
}

/** Returns the example value of a parameter in the path of a route. */
export function examplePathValue(path: string, member: string): string {
  const values: Readonly<Record<string, string>> = { ...exampleIds, KIND: 'artifact', ID: exampleIds.ARTIFACT_UID };
  return values[pathVariable(path, member)] ?? '';
}

/** Returns a text in single quotes for a POSIX shell, with a shell variable in place of each example id. */
function quoted(text: string): string {
  return withVariables(`'${text.replaceAll("'", "'\\''")}'`, (name) => `'"$${name}"'`);
}

/** Example values that are not replaced by variables: they are so short that other texts contain them by chance. */
const fixedValues: readonly string[] = ['SCHEMA_VERSION', 'DOCUMENT', 'VERSION', 'MESSAGE_SEQ', 'PROVIDER'];
const ids = Object.entries(exampleIds).filter(([name]) => !fixedValues.includes(name));

/** Replaces the ids of the examples by shell variables. */
const withVariables = (text: string, write: (name: string) => string): string =>
  ids.reduce((all, [name, id]) => all.replaceAll(id, write(name)), text);

function credential(route: Route): string[] {
  if ('run' in route.allow) return ['-H "Authorization: Bearer $RUN_TOKEN"'];
  return 'anyone' in route.allow ? [] : ['-H "Authorization: Bearer $RUNYARD_API_KEY"'];
}

function bodyOf(route: Route, example: Example): string[] {
  if (example.bytes !== undefined)
    return [`-H 'Content-Type: ${route.bodyType}'`, `--data-binary ${quoted(example.bytes)}`];
  if (example.body === undefined) return [];
  return ["-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(example.body))}`];
}

/** Converts a query parameter into pairs of name and value. */
function pairsOf(name: string, value: unknown): [string, string][] {
  if (Array.isArray(value)) return value.map((each) => [name, String(each)]);
  if (typeof value !== 'object' || value === null) return [[name, String(value)]];
  return Object.entries(value).map(([member, each]) => [`${name}[${member}]`, String(each)]);
}

function urlOf(route: Route, example: Example, baseUrl: string): string {
  if ('anyone' in route.allow && route.allow.anyone === 'with_signature') return '"$SIGNED_URL"';
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, member: string) => `$${pathVariable(route.path, member)}`);
  const pairs = Object.entries(example.query ?? {}).flatMap(([name, value]) => pairsOf(name, value));
  const query = withVariables(new URLSearchParams(pairs).toString(), (name) => `$${name}`);
  return `"${baseUrl}${apiPrefix}${path}${query === '' ? '' : `?${query}`}"`;
}

/**
 * Returns the example of a route as a command line of curl. The person who runs the command must set its shell variables:
 * RUNYARD_API_KEY or RUN_TOKEN, and the ids in the path.
 */
export function curlCommand(route: Route, example: Example, baseUrl: string): string {
  const body = bodyOf(route, example);
  const implied = body.length > 0 ? 'POST' : 'GET';
  const options = [
    ...(route.method === implied ? [] : [`-X ${route.method}`]),
    ...(route.answer.eventSchema ? ['-N'] : []),
    ...(route.answer.status === 302 ? ['-L'] : []),
  ];
  const first = ['curl', ...options, urlOf(route, example, baseUrl)].join(' ');
  const origin = example.fromPage ? [`-H 'Origin: ${baseUrl}'`] : [];
  return [first, ...credential(route), ...origin, ...body].join(' \\\n  ');
}
