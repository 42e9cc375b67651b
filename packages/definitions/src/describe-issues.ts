/** Converts the issues that zod found in a file into faults. A fault has the position in the file and a plain sentence. */

import type { FaultCode } from '@runyard/contract/factories/fault-codes';
import type { Faults } from '@runyard/contract/factories/files/faults';
import { readUnknownKey } from '@runyard/contract/factories/files/strict-object';
import { eventsOfProvider, isAvailableProvider } from '@runyard/contract/factories/files/triggers';
import { shorten } from '@runyard/contract/wire/shorten';
import { makeSpelling } from '@runyard/contract/wire/spelling';
import type { z } from 'zod';
import type { Located } from './read-yaml.ts';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** The file that the issues are about. */
export interface IssuesOf {
  readonly file: string;
  readonly located: Located;
  readonly faults: Faults;
}

/** Adds a fault for each issue. `parent` is the path of the checked value in the file. */
export function describeIssues(of: IssuesOf, issues: readonly Issue[], parent: Path = []): void {
  for (const issue of issues) describeIssue(of, issue, [...parent, ...issue.path]);
}

function describeIssue(of: IssuesOf, issue: Issue, path: Path): void {
  const { file, located, faults } = of;
  if (issue.code === 'unrecognized_keys') {
    const messages = issue.message.split('\n');
    for (const [index, key] of issue.keys.entries()) {
      const { message, suggestion } = readUnknownKey(messages[index] ?? 'is not a known key');
      faults.add(
        file,
        located.keyAt([...path, key]),
        `${pathText([...path, key])} ${message}`,
        suggestion,
        'FF_UNKNOWN_FIELD',
      );
    }
    return;
  }
  if (issue.code === 'invalid_union') {
    describeUnion(of, issue, path);
    return;
  }
  const value = valueAt(located.value, path);
  const { message, suggestion } = sentence(issue, value);
  faults.add(file, located.valueAt(path), `${pathText(path)}${message}`.trim(), suggestion, codeOf(issue, value, path));
}

/**
 * Reports the faults of only one alternative of a union. This is the alternative for the provider and the event in the file or, if
 * there is none, the alternative with the fewest faults.
 */
function describeUnion(of: IssuesOf, issue: Extract<Issue, { code: 'invalid_union' }>, path: Path): void {
  const { file, located, faults } = of;
  const value = valueAt(located.value, path);
  const { provider, event } = isRecord(value) ? value : {};
  if (typeof provider === 'string' && isAvailableProvider(provider)) {
    const events = eventsOfProvider[provider as keyof typeof eventsOfProvider];
    if (typeof event === 'string' && !events.includes(event)) {
      const suggestion = makeSpelling(events).suggest(event);
      const hint = suggestion ? `did you mean ${suggestion}?` : `it has ${events.join(', ')}`;
      const message = `${pathText([...path, 'event'])} is no event of ${provider}; ${hint}`;
      faults.add(file, located.valueAt([...path, 'event']), message, suggestion, 'FF_INVALID_EVENT');
      return;
    }
  }
  const has = (issues: readonly Issue[], key: string): number => (issues.some((each) => each.path[0] === key) ? 1 : 0);
  const isWhole = (issues: readonly Issue[]): boolean =>
    issues.some((each) => each.path.length === 0 && isTypeIssue(each));
  const fitting = issue.errors
    .filter((issues) => !isWhole(issues))
    .toSorted(
      (a, b) => has(a, 'provider') - has(b, 'provider') || has(a, 'event') - has(b, 'event') || a.length - b.length,
    );
  const [best] = fitting;
  if (best) describeIssues(of, best, path);
  else
    faults.add(
      file,
      located.valueAt(path),
      `${pathText(path)} ${issue.message}`,
      undefined,
      codeOf(issue, value, path),
    );
}

/** Returns the code of an issue about a value: first by what is wrong, and else by the member. */
function codeOf(issue: Issue, value: unknown, path: Path): FaultCode {
  if (value === undefined) return 'FF_MISSING_REQUIRED';
  if (issue.code === 'invalid_type') return 'FF_TYPE_MISMATCH';
  if (path[0] === 'schemaVersion') return 'FF_UNSUPPORTED_VERSION';
  if (path[0] === 'triggers') return path.includes('filter') ? 'FF_INVALID_FILTER' : 'FF_INVALID_TRIGGER';
  return path.includes('mcpServers') ? 'FF_INVALID_MCP' : 'FF_INVALID_VALUE';
}

const isTypeIssue = (issue: Issue): boolean => issue.code === 'invalid_type';

interface Sentence {
  readonly message: string;
  readonly suggestion?: string;
}

function sentence(issue: Issue, value: unknown): Sentence {
  if (value === undefined && (issue.code === 'invalid_type' || issue.code === 'invalid_value'))
    return { message: ` ${issue.message.replace(/^is required/, 'is missing')}` };
  switch (issue.code) {
    case 'invalid_type':
      return {
        message: ` must be ${named(issue.expected)}, and is ${kindOf(value)}${quoteHint(issue.expected, value)}`,
      };
    case 'invalid_value': {
      const choices = issue.values.map(String);
      const suggestion = typeof value === 'string' ? makeSpelling(choices).suggest(value) : undefined;
      const hint = suggestion ? `; did you mean ${suggestion}?` : '';
      const expected = choices.length === 1 ? choices[0] : `one of ${choices.join(', ')}`;
      return suggestion
        ? { message: ` must be ${expected}${hint}`, suggestion }
        : { message: ` must be ${expected}, and is ${quoteValue(value)}` };
    }
    case 'invalid_key':
      return { message: ` is not accepted as a name: it ${issue.message}` };
    default:
      return { message: ` ${issue.message}` };
  }
}

const kinds: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map of keys',
  record: 'a map of keys',
};
const named = (expected: string): string => kinds[expected] ?? expected;

function kindOf(value: unknown): string {
  if (value === null) return 'empty';
  if (Array.isArray(value)) return 'a list';
  return kinds[typeof value] ?? typeof value;
}

const quoteHint = (expected: string, value: unknown): string =>
  expected === 'string' && (typeof value === 'number' || typeof value === 'boolean') ? '; put it in quotes' : '';

const quoteValue = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(shorten(value, 60)) : kindOf(value);

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function valueAt(root: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, key)
        ? (value as Record<PropertyKey, unknown>)[key]
        : undefined,
    root,
  );
}

/** Returns the path as text, such as `triggers[0].filter.labels`; empty for the whole file. */
function pathText(path: Path): string {
  const text = path.reduce<string>((parent, key) => {
    if (typeof key === 'number') return `${parent}[${key}]`;
    return parent === '' ? String(key) : `${parent}.${String(key)}`;
  }, '');
  return shorten(text, 200);
}
