/** Lays out lists. In a terminal, a list is a table that fits the width. Otherwise it has lines with tabs between the values. */
import { createRequire } from 'node:module';
import type { Colours } from './colours.ts';
import { harmlessLine } from './harmless.ts';

let width: typeof import('string-width').default | undefined;

/**
 * Returns the width of a text in a terminal. Loads the module `string-width` only when it is needed, because loading compiles large regular
 * expressions, which takes an eighth of the start time of a command.
 */
function stringWidth(text: string): number {
  width ??= (createRequire(import.meta.url)('string-width') as typeof import('string-width')).default;
  return width(text);
}

export interface Column<T> {
  readonly header: string;
  /** Text of a cell, for a person. */
  readonly text: (row: T) => string;
  /** Text of a cell for a program. Default: the same as `text`. */
  readonly raw?: (row: T) => string;
  readonly paint?: (row: T, colours: Colours) => (text: string) => string;
  /** `right` aligns numbers. Default: left. */
  readonly align?: 'right';
  /** True: the column becomes narrower if the table is wider than the terminal. */
  readonly flexible?: true;
  /**
   * If it is true, the text is a sentence, which is never cut. If the table is wider than the terminal, the sentence is shown on a line
   * below the row.
   */
  readonly sentence?: true;
}

const gap = '  ';
/** A flexible column never becomes narrower than this. */
const narrowest = 12;

/** Returns one line per row with tabs between the values, without a header. Tabs and line breaks inside a value become spaces. */
export function tabSeparated<T>(columns: readonly Column<T>[], rows: readonly T[]): string {
  const line = (row: T) => columns.map(({ text, raw }) => harmlessLine((raw ?? text)(row), 1_000)).join('\t');
  return rows.map((row) => `${line(row)}\n`).join('');
}

const totalOf = (widths: readonly number[]): number =>
  widths.reduce((sum, each) => sum + each, gap.length * (widths.length - 1));

/**
 * Returns a header and one line for each row, at most `width` characters wide. First, flexible columns become narrower. If this is not
 * enough, some columns are shown below the line of each row, as the name of the column and its value. Empty values are omitted there.
 */
export function table<T>(columns: readonly Column<T>[], rows: readonly T[], width: number, colours: Colours): string {
  const natural = new Map(
    columns.map((column) => [
      column,
      Math.max(stringWidth(column.header), ...rows.map((row) => stringWidth(cellOf(column, row)))),
    ]),
  );
  const beside = columnsBeside(columns, natural, width);
  const below = columns.filter((column) => !beside.includes(column));
  const lines = layOutLines(beside, rows, { natural, width, colours });
  const [header = '', ...others] = lines;
  return `${[header, ...others.flatMap((line, index) => [line, ...linesBelow(below, rows[index] as T, width, colours)])].join('\n')}\n`;
}

const cellOf = <T>({ text }: Column<T>, row: T): string => harmlessLine(text(row), 1_000);

/**
 * Returns the columns that fit beside each other. Until they fit, removes columns from the last to the first: at first only sentences,
 * then flexible columns, and then other columns.
 */
function columnsBeside<T>(
  columns: readonly Column<T>[],
  natural: ReadonlyMap<Column<T>, number>,
  width: number,
): readonly Column<T>[] {
  const widthOf = (column: Column<T>) => natural.get(column) ?? 0;
  if (totalOf(columns.map(widthOf)) <= width) return columns;
  let beside = columns.filter(({ sentence }) => !sentence);
  const least = (column: Column<T>) => (column.flexible ? Math.min(widthOf(column), narrowest) : widthOf(column));
  while (beside.length > 1 && totalOf(beside.map(least)) > width) {
    const leaving = beside.findLast((column, index) => index > 0 && column.flexible) ?? beside.at(-1);
    beside = beside.filter((column) => column !== leaving);
  }
  return beside;
}

/** Returns the values of the columns, wrapped to lines of at most `width` characters. A longer word is not cut and makes its line longer. */
function linesBelow<T>(columns: readonly Column<T>[], row: T, width: number, colours: Colours): string[] {
  const values = columns.flatMap((column) => {
    const cell = cellOf(column, row);
    const paint = column.paint ? column.paint(row, colours) : (text: string) => text;
    return cell === '' ? [] : [`${colours.dim(column.header)} ${paint(cell)}`];
  });
  const lines: string[] = [];
  for (const word of values.join(' · ').split(' ').filter(Boolean)) {
    const last = lines.at(-1);
    if (last !== undefined && stringWidth(last) + 1 + stringWidth(word) <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`${gap}${word}`);
  }
  return lines;
}

/** Returns the header and the line of each row. */
function layOutLines<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  {
    natural,
    width,
    colours,
  }: { readonly natural: ReadonlyMap<Column<T>, number>; readonly width: number; readonly colours: Colours },
): string[] {
  const cells = rows.map((row) => columns.map((column) => cellOf(column, row)));
  const widths = columns.map((column) => natural.get(column) ?? 0);
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
  return [header, ...lines];
}

/** Makes the widest flexible column narrower, again and again, until the table fits. */
function shrink(columns: readonly Column<never>[], widths: number[], width: number): void {
  while (totalOf(widths) > width) {
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

/** Returns the text. If the text is wider than `room` characters of a terminal, cuts it and adds an ellipsis. */
export function fit(text: string, room: number): string {
  if (stringWidth(text) <= room) return text;
  // Creates the segmenter only when a text must be cut, because the segmenter loads the tables of Unicode.
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
