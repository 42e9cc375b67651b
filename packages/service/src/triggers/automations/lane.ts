import { createHash } from 'node:crypto';
import type { AutomationRow } from './automation-row.ts';

/**
 * Returns the lane of a run: the group of runs to which the overlap policy applies. It is a hash of the value at the
 * concurrency key. Null: the automation has no key, or the payload has no text, number or boolean there.
 */
export function laneOf(
  { concurrency_key: path }: Pick<AutomationRow, 'concurrency_key'>,
  payload: unknown,
): string | null {
  if (path === null) return null;
  let value = payload;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, name)) return null;
    value = Reflect.get(value, name);
  }
  if (!['string', 'number', 'boolean'].includes(typeof value)) return null;
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}
