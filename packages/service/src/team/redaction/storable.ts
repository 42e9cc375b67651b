const withoutNul = (text: string): string => text.replaceAll('\u0000', '\ufffd');

/** Returns the value with U+FFFD in place of each NUL, which PostgreSQL refuses in text and jsonb. */
export function storable(value: unknown): unknown {
  if (typeof value === 'string') return withoutNul(value);
  if (Array.isArray(value)) return value.map(storable);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [withoutNul(key), storable(entry)]));
}
