/** Says in plain English why a value does not match a schema. Pass it to zod: `schema.safeParse(value, { error: plainMessage })`. */
import type { z } from 'zod';
import { makeSpelling } from './spelling.ts';

type RawIssue = z.core.$ZodRawIssue;
type Issue = z.core.$ZodIssue;

/** Kinds of values that schemas expect, by zod's names for them. */
const kinds: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  tuple: 'an array',
  object: 'an object',
  record: 'an object',
};

const formats: Readonly<Record<string, string>> = {
  email: 'an email address',
  url: 'a URL',
  uuid: 'a UUID',
  date: 'a day such as 2026-01-31',
  datetime: 'a time in RFC 3339 such as 2026-01-31T12:00:00Z',
};

/** Returns the kind of a JSON value with its article. */
function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'boolean' ? `${value}` : (kinds[typeof value] ?? typeof value);
}

/** Returns the items with commas between them, and `word` before the last item. */
function enumerate(items: readonly string[], word: string): string {
  const unique = [...new Set(items)];
  return unique.length < 2 ? unique.join('') : `${unique.slice(0, -1).join(', ')} ${word} ${unique.at(-1)}`;
}

const quoteBlank = (choice: string): string => (choice.trim() === choice && choice !== '' ? choice : `"${choice}"`);

/** Returns `must be one of a, b`. If a choice resembles the value, also suggests this choice. */
export function choiceMessage(choices: readonly string[], value: unknown): string {
  const named = choices.map(quoteBlank);
  const choiceText = named.length === 1 ? `must be ${named[0]}` : `must be one of ${named.join(', ')}`;
  if (value === undefined) return `is required, and ${choiceText}`;
  const suggestion = typeof value === 'string' ? makeSpelling(choices).suggest(value) : undefined;
  return suggestion === undefined ? choiceText : `${choiceText}; did you mean ${suggestion}?`;
}

type TypeIssue = Extract<RawIssue, { code: 'invalid_type' }>;

/**
 * Returns the kind of value that the schema expects. Looks at the schema, because zod's issue about a text does not say that a number must
 * be whole.
 */
function expectedKind({ expected, inst }: TypeIssue): string {
  const isWhole = (inst?._zod.def as { readonly format?: string } | undefined)?.format === 'safeint';
  return kinds[isWhole ? 'int' : expected] ?? expected;
}

function typeMessage(issue: TypeIssue): string {
  if (issue.input === undefined) return 'is required';
  if (issue.expected === 'never') return 'is not accepted here';
  const kindText = `must be ${expectedKind(issue)}`;
  return issue.expected === 'int' && typeof issue.input === 'number'
    ? kindText
    : `${kindText}, not ${kindOf(issue.input)}`;
}

const units: Readonly<Record<string, readonly [one: string, several: string]>> = {
  string: ['character', 'characters'],
  array: ['entry', 'entries'],
  set: ['entry', 'entries'],
  map: ['entry', 'entries'],
  file: ['byte', 'bytes'],
};

/** `bound` is the word for a limit that the number may equal; `beyond` is the word for a limit that it may not equal. */
function sizeMessage(
  { origin, exact, inclusive }: { readonly origin: string; readonly exact?: boolean; readonly inclusive?: boolean },
  limit: number | bigint,
  { bound, beyond }: { readonly bound: 'at least' | 'at most'; readonly beyond: 'greater than' | 'less than' },
): string {
  const unit = units[origin]?.[Number(limit) === 1 ? 0 : 1];
  if (origin === 'string' && bound === 'at least' && Number(limit) === 1 && !exact) return 'must not be empty';
  if (unit !== undefined) return `must have ${exact ? 'exactly' : bound} ${limit} ${unit}`;
  return `must be ${inclusive === false ? beyond : bound} ${limit}`;
}

function formatMessage(issue: Extract<RawIssue, { code: 'invalid_format' }>): string {
  switch (issue.format) {
    case 'starts_with':
      return `must begin with ${JSON.stringify(issue.prefix)}`;
    case 'ends_with':
      return `must end with ${JSON.stringify(issue.suffix)}`;
    case 'includes':
      return `must contain ${JSON.stringify(issue.includes)}`;
    case 'regex':
      return `must match the pattern ${issue.pattern}`;
    default:
      return `must be ${formats[issue.format] ?? `a valid ${issue.format}`}`;
  }
}

const mostNamedKeys = 10;

/** Lists the members that an object does not accept, and the accepted members that were probably meant. */
function unknownKeysMessage(issue: Extract<RawIssue, { code: 'unrecognized_keys' }>): string {
  const shape = (issue.inst?._zod.def as { readonly shape?: object } | undefined)?.shape ?? {};
  const knownNames = Object.keys(shape);
  const spelling = makeSpelling(knownNames);
  // Name only some unknown members, because a body can have very many.
  const suggestions = issue.keys.slice(0, mostNamedKeys).map((key) => ({ key, meant: spelling.suggest(key) }));
  const named = suggestions.map(({ key, meant }) =>
    meant === undefined ? `no member ${key} is known` : `the member ${key} is unknown; did you mean ${meant}?`,
  );
  const hasOthers = suggestions.some(({ meant }) => meant === undefined) && knownNames.length > 0;
  return `${named.join('; ')}${hasOthers ? `; known members: ${knownNames.join(', ')}` : ''}`;
}

/** Returns true if the alternative expects another kind of value. */
const isOther = (issues: readonly Issue[]): boolean =>
  issues.some(({ code, path }) => path.length === 0 && (code === 'invalid_type' || code === 'invalid_value'));

/** Lists the alternatives of a union. If the value almost matches one alternative, returns the fault in this alternative. */
function unionMessage(issue: Extract<RawIssue, { code: 'invalid_union' }>): string {
  if (issue.inclusive === false) return 'fits several forms at once; leave out the members of all but one';
  if (issue.discriminator !== undefined && issue.options !== undefined) {
    const tagValue = (issue.input as Readonly<Record<string, unknown>> | null)?.[issue.discriminator];
    return choiceMessage(issue.options.map(String), tagValue);
  }
  if (issue.input === undefined) return 'is required';
  const [nearest] = issue.errors.filter((issues) => !isOther(issues)).toSorted((a, b) => a.length - b.length);
  const [fault] = nearest ?? [];
  if (fault) return fault.path.length > 0 ? `${fault.path.map(String).join('.')} ${fault.message}` : fault.message;
  const choices = issue.errors.flat().flatMap((each) => {
    if (each.code === 'invalid_type') return [kinds[each.expected] ?? each.expected];
    return each.code === 'invalid_value' ? each.values.map(String) : [];
  });
  return `must be ${enumerate(choices, 'or')}, not ${kindOf(issue.input)}`;
}

/** Returns the reason why a member is wrong, as the rest of a sentence that begins with the name of the member. */
export function plainMessage(issue: RawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return typeMessage(issue);
    case 'invalid_value':
      return choiceMessage(issue.values.map(String), issue.input);
    case 'too_small':
      return sizeMessage(issue, issue.minimum, { bound: 'at least', beyond: 'greater than' });
    case 'too_big':
      return sizeMessage(issue, issue.maximum, { bound: 'at most', beyond: 'less than' });
    case 'invalid_format':
      return formatMessage(issue);
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'unrecognized_keys':
      return unknownKeysMessage(issue);
    case 'invalid_union':
      return unionMessage(issue);
    // This issue only says that a name or an entry is wrong. Take the reason from the issues inside it.
    case 'invalid_key':
      return issue.issues[0]?.message ?? 'is not accepted as a name';
    case 'invalid_element':
      return issue.issues[0]?.message ?? 'has an entry that is not accepted';
    case 'custom':
      return 'is not accepted here';
  }
}

/**
 * Returns the reason for a fault in a parameter of a URL. Before the check, the service converted texts that look like a number, true
 * or false to this value. So a string here looks like none of them. An array is a parameter that was given twice.
 */
export function plainParameterMessage(issue: RawIssue): string {
  if (issue.code !== 'invalid_type' || issue.input === undefined) return plainMessage(issue);
  if (Array.isArray(issue.input)) return 'must be given only once';
  return typeof issue.input === 'string' ? `must be ${expectedKind(issue)}` : plainMessage(issue);
}
