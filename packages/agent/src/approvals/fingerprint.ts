import { createHash } from '../builtin-modules.ts';

/** The value as JSON whose objects have their members in one order. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(',')}}`;
}

/** SHA-256 over name and input: the same action, asked for again in another sandbox, has the same one. */
export function fingerprint(action: { readonly name: string; readonly input: unknown }): string {
  return createHash('sha256')
    .update(canonical([action.name, action.input]))
    .digest('hex');
}
