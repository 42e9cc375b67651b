/**
 * Returns the same text for two names that mean the same branch on some code hosts, because their file systems ignore case and Unicode
 * normal forms.
 */
export const folded = (name: string): string => name.normalize('NFC').toLowerCase();

/** Returns whether the pattern matches the name; `*` matches any text. */
export function matchesPattern(pattern: string, name: string): boolean {
  const [first = '', ...parts] = folded(pattern).split('*');
  const text = folded(name);
  const last = parts.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last)) return false;
  let at = first.length;
  for (const part of parts) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= text.length - last.length;
}
