import { shorten } from '../../wire/shorten.ts';

/** Maximum number of characters of a path, in a fault of a filter or in an explanation of its conditions. */
const maxPathLength = 300;

/**
 * Returns the path of a member, such as `data.items[2].state`. A name with characters other than letters, digits, `_`, `$` and `-` is
 * written as `["a b"]`.
 */
export function memberPath(parent: string, name: string | number): string {
  if (typeof name === 'number') return `${parent}[${name}]`;
  if (!/^[A-Za-z_$][A-Za-z0-9_$-]*$/.test(name)) return `${parent}[${JSON.stringify(shorten(name, 80))}]`;
  return parent === '' ? name : `${parent}.${name}`;
}

/** Cuts a path for display. */
export const shownPath = (path: string): string => shorten(path, maxPathLength);
