/** Finds the words that differ between a deleted line and the line that replaces it. */
import { diffWordsWithSpace } from 'diff';
import type { DiffLine } from '../../../parts/diff.tsx';

/** A part of a line: the places of its first character and of the character after it. */
export type Range = readonly [from: number, to: number];

/** Lines with more differences are not compared: their marks would not help, and the comparison takes long. */
const maxDifferences = 60;
const maxLength = 2_000;
/** Part of the characters that two lines must have in common. Otherwise one line does not replace the other. */
const leastEqual = 0.3;

/** Returns the parts that differ, for the index of each line that another line replaces. */
export function changedWords(lines: readonly DiffLine[]): ReadonlyMap<number, readonly Range[]> {
  const found = new Map<number, readonly Range[]>();
  let at = 0;
  const run = (kind: DiffLine['kind']) => {
    const first = at;
    while (lines[at]?.kind === kind) at += 1;
    return { first, count: at - first };
  };
  while (at < lines.length) {
    const deleted = run('del');
    const added = run('add');
    if (deleted.count === 0 && added.count === 0) at += 1;
    // The lines of two blocks of different length have no clear pairs.
    if (deleted.count !== added.count) continue;
    for (let each = 0; each < deleted.count; each++) {
      const [before, after] = [deleted.first + each, added.first + each];
      const ranges = compare(lines[before]?.text ?? '', lines[after]?.text ?? '');
      if (ranges === undefined) continue;
      found.set(before, ranges.before);
      found.set(after, ranges.after);
    }
  }
  return found;
}

function compare(before: string, after: string): { before: Range[]; after: Range[] } | undefined {
  if (before.length > maxLength || after.length > maxLength) return undefined;
  const parts = diffWordsWithSpace(before, after, { maxEditLength: maxDifferences });
  if (parts === undefined) return undefined;
  const ranges: { before: Range[]; after: Range[] } = { before: [], after: [] };
  let [old, fresh, equal] = [0, 0, 0];
  for (const { value, added, removed } of parts) {
    if (removed) ranges.before.push([old, old + value.length]);
    if (added) ranges.after.push([fresh, fresh + value.length]);
    if (!added && !removed) equal += value.trim().length;
    if (!added) old += value.length;
    if (!removed) fresh += value.length;
  }
  return equal >= leastEqual * Math.max(before.trim().length, after.trim().length) ? ranges : undefined;
}
