/**
 * Converts values to JSON that the service can store. This file imports nothing, because each agent process loads this file at its start.
 */

/**
 * Finds, in the output of JSON.stringify, U+0000 and lone surrogates, which PostgreSQL's text and jsonb cannot hold, and the name
 * `__proto__`, which the service refuses. The pattern may also match an escaped backslash before a `u`. Such a match only costs time.
 */
const unstorable = /\\u(?:0000|d[89a-f][0-9a-f]{2})|"__proto__"/i;

/** Returns the value as JSON of its `storable` form. */
export function storableJson(value: unknown): string {
  const json = JSON.stringify(value);
  return unstorable.test(json) ? JSON.stringify(storable(JSON.parse(json))) : json;
}

function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\u0000', '\uFFFD');
}

const storableName = (name: string): string => (name === '__proto__' ? '[__proto__]' : storableText(name));

/**
 * Returns the JSON value as the service can store it: NUL and lone surrogates in texts and names become U+FFFD, the name `__proto__`
 * becomes `[__proto__]`.
 */
export function storable(value: unknown): unknown {
  if (typeof value === 'string') return storableText(value);
  if (Array.isArray(value)) return value.map(storable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [storableName(name), storable(member)]));
}
