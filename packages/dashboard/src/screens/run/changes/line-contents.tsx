/** Shows the lines of a diff with the colours of their language, and with marks on the words that differ. */
import { visibleText } from '@runyard/contract/wire/visible';
import { type ReactNode, useEffect, useMemo, useState } from 'react';
import type { DiffLine } from '../../../parts/diff.tsx';
import { type CodeWord, highlight } from '../../../parts/markdown/highlight.ts';
import styles from './changes.module.css';
import { changedWords, type Range } from './word-changes.ts';

/** The words of lines, by the index of the line. */
type Words = ReadonlyMap<number, readonly CodeWord[]>;

/**
 * Returns the hunks of a diff. Each hunk is two lists of the indexes of lines: the lines of the file before and after the change. The
 * colours of a line depend on the lines before it, so both files are coloured separately.
 */
function hunksOf(lines: readonly DiffLine[]): { readonly before: number[]; readonly after: number[] }[] {
  const hunks = [{ before: [] as number[], after: [] as number[] }];
  for (const [index, { kind }] of lines.entries()) {
    if (kind === 'hunk') hunks.push({ before: [], after: [] });
    if (kind === 'del' || kind === 'same') hunks.at(-1)?.before.push(index);
    if (kind === 'add' || kind === 'same') hunks.at(-1)?.after.push(index);
  }
  return hunks.filter(({ before, after }) => before.length + after.length > 0);
}

async function readColours(path: string, lines: readonly DiffLine[], signal: AbortSignal): Promise<Words> {
  const sides = hunksOf(lines).flatMap(({ before, after }) => [before, after]);
  const texts = sides.map((side) => side.map((index) => lines[index]?.text ?? '').join('\n'));
  const coloured = await highlight(path, texts, signal);
  const words = new Map<number, readonly CodeWord[]>();
  for (const [side, indexes] of sides.entries())
    for (const [place, index] of indexes.entries()) {
      const line = coloured?.[side]?.[place];
      if (line !== undefined) words.set(index, line);
    }
  return words;
}

/** Cuts the words of a line at the ends of the marked parts. */
export function* partsOf(
  words: readonly CodeWord[],
  marks: readonly Range[],
): Generator<{ readonly text: string; readonly kind: CodeWord[1]; readonly isMarked: boolean }> {
  const cuts = marks.flat();
  let at = 0;
  for (const [text, kind] of words) {
    const end = at + text.length;
    const inside = cuts.filter((cut) => cut > at && cut < end);
    for (const cut of [...inside, end]) {
      const isMarked = marks.some(([from, to]) => from <= at && cut <= to);
      if (cut > at) yield { text: text.slice(text.length - (end - at), text.length - (end - cut)), kind, isMarked };
      at = cut;
    }
  }
}

/** Returns a function that shows a line of the diff of a file. */
export function useLineContents(
  path: string,
  lines: readonly DiffLine[],
): (line: DiffLine, index: number) => ReactNode {
  const marks = useMemo(() => changedWords(lines), [lines]);
  const [colours, setColours] = useState<Words>(new Map());
  useEffect(() => {
    const controller = new AbortController();
    const read = async () => {
      const found = await readColours(path, lines, controller.signal);
      if (!controller.signal.aborted) setColours(found);
    };
    void read();
    return () => controller.abort();
  }, [path, lines]);
  return ({ text }, index) => {
    const words = colours.get(index);
    // While newer lines are being coloured, the colours are those of earlier lines.
    const isOfLine = words?.map(([word]) => word).join('') === text;
    return [...partsOf(words && isOfLine ? words : [[text]], marks.get(index) ?? [])].map(
      ({ text: part, kind, isMarked }, place) =>
        isMarked ? (
          <mark key={place} className={`${kind ? styles[kind] : ''} ${styles.marked}`}>
            {visibleText(part)}
          </mark>
        ) : kind === undefined ? (
          visibleText(part)
        ) : (
          <span key={place} data-word={kind} className={styles[kind]}>
            {visibleText(part)}
          </span>
        ),
    );
  };
}
