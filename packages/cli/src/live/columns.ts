/** Lays out lists: in a terminal as a table that fits its width, else as lines with tabs between the values. */
import { createRequire } from 'node:module';
import type { Colours } from './colours.ts';
import { harmlessLine } from './harmless.ts';

let width: typeof import('string-width').default | undefined;

/** Loads the module for the first table, not for each command: it compiles large regular expressions, an eighth of the start of a command. */
function stringWidth(text: string): number {
  width ??= (createRequire(import.meta.url)('string-width') as typeof import('string-width')).default;
  return width(text);
}

export interface Column<T> {
  readonly header: string;
  /** Text of a cell, for a person. */
  readonly text: (row: T) => string;
  /** Text of a cell for a program; the same when absent. */
  readonly raw?: (row: T) => string;
  readonly paint?: (row: T, colours: Colours) => (text: string) => string;
  /** `right`: numbers. */
  readonly align?: 'right';
  /** True: the column gives way when the table is wider than the terminal. */
  readonly flexible?: true;
}

const gap = '  ';
/** Narrowest flexible column. A narrower terminal breaks the lines. */
const narrowest = 12;

/** Returns one line per row with tabs between the values, without a header. A value holds no tab and no line end. */
export function tabSeparated<T>(columns: readonly Column<T>[], rows: readonly T[]): string {
  const line = (row: T) => columns.map(({ text, raw }) => harmlessLine((raw ?? text)(row), 1_000)).join('\t');
  return rows.map((row) => `${line(row)}\n`).join('');
}

/** Returns a header and one line per row, at most `width` columns wide where the flexible columns can give way. */
export function table<T>(columns: readonly Column<T>[], rows: readonly T[], width: number, colours: Colours): string {
  const cells = rows.map((row) => columns.map(({ text }) => harmlessLine(text(row), 1_000)));
  const widths = columns.map(({ header }, index) =>
    Math.max(stringWidth(header), ...cells.map((line) => stringWidth(line[index] ?? ''))),
  );
  shrink(columns, widths, width);
  const layOut = (line: readonly string[], paints: readonly ((text: string) => string)[]) =>
    line
      .map((text, index) => {
        const room = widths[index] ?? 0;
        const cut = fit(text, room);
        const space = ' '.repeat(room - stringWidth(cut));
        const painted = (paints[index] ?? ((each) => each))(cut);
        if (columns[index]?.align === 'right') return space + painted;
        return index === columns.length - 1 ? painted : painted + space;
      })
      .join(gap)
      .trimEnd();
  const header = layOut(
    columns.map((column) => column.header),
    columns.map(() => colours.dim),
  );
  const lines = rows.map((row, index) =>
    layOut(
      cells[index] ?? [],
      columns.map(({ paint }) => (paint ? paint(row, colours) : (text: string) => text)),
    ),
  );
  return `${[header, ...lines].join('\n')}\n`;
}

/** Takes from the widest flexible column until the table fits. */
function shrink(columns: readonly Column<never>[], widths: number[], width: number): void {
  const total = () => widths.reduce((sum, each) => sum + each, gap.length * (widths.length - 1));
  while (total() > width) {
    let widest = -1;
    for (const [index, column] of columns.entries()) {
      if (!column.flexible || (widths[index] ?? 0) <= narrowest) continue;
      if (widest < 0 || (widths[index] ?? 0) > (widths[widest] ?? 0)) widest = index;
    }
    if (widest < 0) return;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
}

let graphemes: Intl.Segmenter | undefined;

/** Returns the text, cut with an ellipsis so that it takes at most `room` columns of a terminal. */
export function fit(text: string, room: number): string {
  if (stringWidth(text) <= room) return text;
  // Made for the first table: it loads the tables of Unicode.
  graphemes ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' });
  let result = '';
  let used = 1;
  for (const { segment } of graphemes.segment(text)) {
    used += stringWidth(segment);
    if (used > room) break;
    result += segment;
  }
  return `${result.trimEnd()}…`;
}
