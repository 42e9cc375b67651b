/** Returns the member of a value that a path with dots names; a number is the place in a list. Undefined: there is none. */
export function memberAt(value: unknown, path: string): unknown {
  let found = value;
  for (const name of path.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = Reflect.get(found, name);
  }
  return found;
}

/** Returns a member that is text or a number as text; undefined: it is neither. */
export function memberText(value: unknown, path: string): string | undefined {
  const found = memberAt(value, path);
  if (typeof found === 'string') return found;
  // A larger number has lost digits, so that two of them could look the same.
  return Number.isSafeInteger(found) ? String(found) : undefined;
}
