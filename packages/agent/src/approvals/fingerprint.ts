import { createHash } from '../builtin-modules.ts';

/** Returns the value as JSON with the members of each object in alphabetical order. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(',')}}`;
}

/** Returns the SHA-256 of name and input. The same action has the same fingerprint in another sandbox. */
export function fingerprint(action: { readonly name: string; readonly input: unknown }): string {
  return createHash('sha256')
    .update(canonical([action.name, action.input]))
    .digest('hex');
}
