/** Changes of files as lines. A git patch already consists of lines with signs, so showing it needs no library. */

import { visibleText } from '@runyard/contract/wire/visible';
import { useState } from 'react';

/** A line of a diff: its text, its number in the old or the new file, and the kind of change. */
export interface DiffLine {
  readonly kind: 'add' | 'del' | 'same' | 'hunk';
  readonly number: number | undefined;
  readonly text: string;
}

/** Number of lines that are shown at first. Further lines are shown after a click. */
const firstLines = 400;

/** Reads the hunks of one file of a patch (git-diff, "Generating patch text with -p"). Text before the first hunk is skipped. */
export function readPatch(patch: string): DiffLine[] {
  const lines: DiffLine[] = [];
  let before = 0;
  let after = 0;
  for (const line of patch.replace(/\n$/, '').split('\n')) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/.exec(line);
    if (hunk) {
      before = Number(hunk[1]);
      after = Number(hunk[2]);
      lines.push({ kind: 'hunk', number: undefined, text: hunk[3]?.trim() ?? '' });
    } else if (before === 0 && after === 0) continue;
    else if (line.startsWith('+')) lines.push({ kind: 'add', number: after++, text: line.slice(1) });
    else if (line.startsWith('-')) lines.push({ kind: 'del', number: before++, text: line.slice(1) });
    else if (line.startsWith('\\')) lines.push({ kind: 'hunk', number: undefined, text: line.slice(2) });
    else {
      lines.push({ kind: 'same', number: after++, text: line.slice(1) });
      before += 1;
    }
  }
  return lines;
}

/** Returns the lines that differ between two texts. Before and after each difference are at most two equal lines. */
export function compareTexts(before: string, after: string): DiffLine[] {
  const old = before === '' ? [] : before.split('\n');
  const fresh = after === '' ? [] : after.split('\n');
  let head = 0;
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < fresh.length - head && old.at(-1 - tail) === fresh.at(-1 - tail)) tail += 1;
  const from = Math.max(0, head - 2);
  const same = (first: number, end: number): DiffLine[] =>
    fresh.slice(first, end).map((text, index) => ({ kind: 'same', number: first + index + 1, text }));
  return [
    ...same(from, head),
    ...old
      .slice(head, old.length - tail)
      .map((text, index): DiffLine => ({ kind: 'del', number: head + index + 1, text })),
    ...fresh
      .slice(head, fresh.length - tail)
      .map((text, index): DiffLine => ({ kind: 'add', number: head + index + 1, text })),
    ...same(fresh.length - tail, Math.min(fresh.length, fresh.length - tail + 2)),
  ];
}

const signs = { add: '+', del: '-', same: ' ', hunk: ' ' } as const;
const classes = { add: 'ln add', del: 'ln del', same: 'ln', hunk: 'ln hunk' } as const;

/** Shows lines of a diff. With `onLine`, each line number is a button to comment on the line. */
export function Diff({ lines, onLine }: { lines: readonly DiffLine[]; onLine?: (line: DiffLine) => void }) {
  const [isWhole, setWhole] = useState(false);
  const shownLines = isWhole ? lines : lines.slice(0, firstLines);
  return (
    <div className="code diff">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls the lines */}
      <pre tabIndex={0}>
        {shownLines.map((line, index) => (
          <span key={index} className={classes[line.kind]}>
            {onLine && line.number !== undefined ? (
              <button
                type="button"
                className="g fold"
                aria-label={`Comment on line ${line.number}`}
                onClick={() => onLine(line)}
              >
                {line.number}
              </button>
            ) : (
              <span className="g">{line.number}</span>
            )}
            <span className="pm">{signs[line.kind]}</span>
            {visibleText(line.text)}
          </span>
        ))}
      </pre>
      {lines.length > shownLines.length && (
        <div className="foot">
          {`${lines.length - shownLines.length} more lines`}
          <button type="button" className="btn ghost sm" onClick={() => setWhole(true)}>
            Show all
          </button>
        </div>
      )}
    </div>
  );
}
