import type { Colours } from './colours.ts';
import { type Column, table, tabSeparated } from './columns.ts';
import { harmlessJson } from './harmless.ts';

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
    readonly columns: readonly Column<T>[];
    readonly rows: readonly T[];
    /** The value that `--json` prints. */
    readonly json: unknown;
    /** Message for a person if the list is empty. */
    readonly none: string;
  },
  options: { readonly json?: true },
  screen: Screen = process.stdout,
): void {
  const { columns, rows } = list;
  if (options.json) context.out(`${harmlessJson(list.json)}\n`);
  else if (rows.length === 0) context.report(list.none);
  else if (screen.isTTY) context.out(table(columns, rows, screen.columns ?? 80, context.colours));
  else context.out(tabSeparated(columns, rows));
}
