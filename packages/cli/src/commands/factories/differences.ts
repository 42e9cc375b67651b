/** Finds the single differences between the old and the new value of a member, so that a person sees each of them even in large values. */
import { isDeepStrictEqual } from 'node:util';
import { shorten } from '@runyard/contract/wire/shorten';

/** A difference. `before` is undefined if there was no old value, and `after` is undefined if there is no new value. */
export interface Difference {
  /** Place in the member, such as `.filter.labels.in[1]`. Empty for the whole member. */
  readonly at: string;
  readonly before: unknown;
  readonly after: unknown;
}

const isTree = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
const isPlainName = (name: string): boolean => /^\w+$/.test(name);

/**
 * Returns the differences between two JSON values. Looks into maps and lists, so that each difference is as small as possible. Two values
 * of different kinds are one difference.
 */
export function differencesOf(before: unknown, after: unknown, at = ''): Difference[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (!isTree(before) || !isTree(after) || Array.isArray(before) !== Array.isArray(after))
    return [{ at, before, after }];
  const partAt = (name: string) =>
    Array.isArray(before) ? `[${name}]` : isPlainName(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => differencesOf(before[name], after[name], at + partAt(name)));
}

/** Lines in a row that differ between two texts. */
export interface ChangedLines {
  /** Number of the first removed line in the old text, counted from 1. */
  readonly line: number;
  readonly removed: readonly string[];
  readonly added: readonly string[];
}

/** If the number of lines of the old text, multiplied by the number of lines of the new text, is larger than this, the whole texts are one change. */
const maxCompared = 1_000_000;

/** Returns the changed lines between two texts. As many lines as possible count as unchanged. */
export function changedLines(before: string, after: string): ChangedLines[] {
  const [a, b] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  return changesBetween(a.slice(start, a.length - end), b.slice(start, b.length - end), start + 1);
}

/** Returns the changes between two lists of lines. `firstLine`: number of the first line of `a` in the old text. */
function changesBetween(a: readonly string[], b: readonly string[], firstLine: number): ChangedLines[] {
  if (a.length === 0 && b.length === 0) return [];
  if (a.length * b.length > maxCompared) return [{ line: firstLine, removed: a, added: b }];
  const width = b.length + 1;
  /** For each pair (i, j): the length of the longest common subsequence of the lines of `a` from i on and the lines of `b` from j on. */
  const common = new Uint16Array((a.length + 1) * width);
  const at = (i: number, j: number): number => common[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const changes: ChangedLines[] = [];
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    const [fromA, fromB] = [i, j];
    while ((i < a.length || j < b.length) && (i === a.length || j === b.length || a[i] !== b[j])) {
      if (j === b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) i += 1;
      else j += 1;
    }
    changes.push({ line: firstLine + fromA, removed: a.slice(fromA, i), added: b.slice(fromB, j) });
    while (i < a.length && j < b.length && a[i] === b[j]) {
      i += 1;
      j += 1;
    }
  }
  return changes;
}

/** If two long texts are cut, this number of characters before their first difference is shown. */
const shownBefore = 20;

/** Cuts two texts to `max` characters around their first difference. */
export function cutAroundDifference(before: string, after: string, max: number): readonly [string, string] {
  const [a, b] = [[...before], [...after]];
  if (a.length <= max && b.length <= max) return [before, after];
  let same = 0;
  while (same < a.length && a[same] === b[same]) same += 1;
  const from = Math.max(0, same - shownBefore);
  const cut = (chars: readonly string[]) => shorten((from > 0 ? '…' : '') + chars.slice(from).join(''), max);
  return [cut(a), cut(b)];
}
