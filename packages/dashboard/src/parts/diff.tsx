/** Changes of files as lines. A git patch already consists of lines with signs, so showing it needs no library. */

import { visibleText } from '@runyard/contract/wire/visible';
import { Fragment, type ReactNode, useState } from 'react';
import { CodeBlock, CodeFoot } from './blocks.tsx';
import styles from './code.module.css';
import { Button } from './controls.tsx';

/** A line of a diff: its text, its number in the old or the new file, and the kind of change. */
export interface DiffLine {
  readonly kind: 'add' | 'del' | 'same' | 'hunk';
  readonly number: number | undefined;
  readonly text: string;
}

/** Number of lines that are shown at first, unless the caller wants fewer. Further lines are shown after a click. */
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
const classes = { add: styles.add, del: styles.deleted, same: '', hunk: styles.hunk } as const;

/**
 * Shows the `first` lines of a diff, and all on request. With `onLine`, each line number is a button to comment on the line. `content`
 * shows the text of a line; `below` returns what is shown below a line, or null.
 */
export function Diff({
  lines,
  first = firstLines,
  onLine,
  content = ({ text }) => visibleText(text),
  below,
}: {
  lines: readonly DiffLine[];
  first?: number;
  onLine?: (line: DiffLine) => void;
  content?: (line: DiffLine, index: number) => ReactNode;
  below?: (line: DiffLine) => ReactNode;
}) {
  const [isWhole, setWhole] = useState(false);
  const shownLines = isWhole ? lines : lines.slice(0, first);
  const blocks: { readonly from: number; readonly lines: DiffLine[]; below: ReactNode }[] = [];
  for (const [index, line] of shownLines.entries()) {
    if (index === 0 || blocks.at(-1)?.below) blocks.push({ from: index, lines: [], below: null });
    const block = blocks.at(-1);
    if (block === undefined) continue;
    block.lines.push(line);
    block.below = below?.(line);
  }
  return (
    <CodeBlock className={styles.diff} data-part="diff">
      {blocks.map((block) => (
        <Fragment key={block.from}>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls the lines */}
          <pre tabIndex={0}>
            {block.lines.map((line, index) => (
              <Line key={index} line={line} onLine={onLine}>
                {content(line, block.from + index)}
              </Line>
            ))}
          </pre>
          {block.below}
        </Fragment>
      ))}
      {lines.length > shownLines.length && (
        <CodeFoot>
          {`${lines.length - shownLines.length} more lines`}
          <Button kind="ghost" small onClick={() => setWhole(true)}>
            Show all
          </Button>
        </CodeFoot>
      )}
    </CodeBlock>
  );
}

const Line = ({
  line,
  onLine,
  children,
}: {
  line: DiffLine;
  onLine: ((line: DiffLine) => void) | undefined;
  children: ReactNode;
}) => (
  <span data-kind={line.kind} className={`${styles.line} ${classes[line.kind]}`}>
    {onLine && line.number !== undefined ? (
      <button
        type="button"
        className={`${styles.gutter} ${styles.fold}`}
        aria-label={`Comment on ${line.kind === 'del' ? 'deleted line' : 'line'} ${line.number}`}
        onClick={() => onLine(line)}
      >
        {line.number}
      </button>
    ) : (
      <span className={styles.gutter}>{line.number}</span>
    )}
    <span className={styles.sign}>{signs[line.kind]}</span>
    <span>{children}</span>
  </span>
);
