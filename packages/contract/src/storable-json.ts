/** JSON that the service takes, made of text that came from anywhere. Loads nothing: the agent's start uses it. */

/**
 * What PostgreSQL's text and jsonb cannot hold, U+0000 and lone surrogates, as JSON.stringify escapes it, and the name that the service
 * refuses. An escaped backslash before an `u` may match too: that only costs a second look.
 */
const unstorable = /\\u(?:0000|d[89a-f][0-9a-f]{2})|"__proto__"/i;

/** Returns the value as JSON that the service can store: NUL and lone surrogates become U+FFFD, the name `__proto__` becomes `[__proto__]`. */
export function storableJson(value: unknown): string {
  const json = JSON.stringify(value);
  return unstorable.test(json) ? JSON.stringify(storable(JSON.parse(json))) : json;
}

function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\u0000', '\uFFFD');
}

const storableName = (name: string): string => (name === '__proto__' ? '[__proto__]' : storableText(name));

function storable(value: unknown): unknown {
  if (typeof value === 'string') return storableText(value);
  if (Array.isArray(value)) return value.map(storable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [storableName(name), storable(member)]));
}
