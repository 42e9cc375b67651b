import type { Colours } from './colours.ts';
import { type Column, table, tabSeparated } from './columns.ts';
import { harmlessJson } from './harmless.ts';
import { formatAgo } from './times.ts';

/** A column that shows how long ago something happened. Programs get the time itself. */
interface AgoColumn<T> {
  readonly header: string;
  /** Returns the time in RFC 3339. */
  readonly ago: (row: T) => string | null | undefined;
  /** Text for a person if there is no time. Default: empty. */
  readonly never?: string;
}

export type ListColumn<T> = Column<T> | AgoColumn<T>;

function asText<T>(column: ListColumn<T>): Column<T> {
  if ('text' in column) return column;
  const { header, ago, never = '' } = column;
  const now = Date.now();
  const text = (row: T) => {
    const time = ago(row);
    return time ? formatAgo(time, now) : never;
  };
  return { header, text, raw: (row) => ago(row) ?? '' };
}

/** The output of a command. */
export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/**
 * Prints a list. If requested, prints JSON. Otherwise prints a table if the output is a terminal. If it is not, prints lines for programs,
 * with tabs between the values and with times in RFC 3339.
 */
export function printList<T>(
  context: {
    readonly out: (text: string) => void;
    readonly report: (message: string) => void;
    readonly colours: Colours;
  },
  list: {
    readonly columns: readonly ListColumn<T>[];
    readonly rows: readonly T[];
    /** The value that `--json` prints. */
    readonly json: unknown;
    /** Message for a person if the list is empty. */
    readonly none: string;
  },
  options: { readonly json?: true },
  screen: Screen = process.stdout,
): void {
  const { rows } = list;
  const columns = list.columns.map((column) => asText(column));
  if (options.json) context.out(`${harmlessJson(list.json)}\n`);
  else if (rows.length === 0) context.report(list.none);
  else if (screen.isTTY) context.out(table(columns, rows, screen.columns ?? 80, context.colours));
  else context.out(tabSeparated(columns, rows));
}
