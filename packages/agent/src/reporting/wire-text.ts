/** PostgreSQL's text and jsonb hold neither U+0000 nor lone surrogates. JSON.stringify writes both as escapes, which this finds. */
const unstorable = /\\u(?:0000|d[89a-f][0-9a-f]{2})/i;

/** JSON that the service can store: NUL characters and lone surrogates become U+FFFD. */
export function storableJson(value: unknown): string {
  const json = JSON.stringify(value);
  return unstorable.test(json) ? JSON.stringify(storable(value)) : json;
}

/** Text that the service can store. */
function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\u0000', '\uFFFD');
}

function storable(value: unknown): unknown {
  if (typeof value === 'string') return storableText(value);
  if (Array.isArray(value)) return value.map(storable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [storableText(key), storable(member)]));
}
