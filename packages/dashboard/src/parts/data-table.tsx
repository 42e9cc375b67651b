import type { ReactNode } from 'react';
import type { Look } from './look.ts';
import { Cell, type Column, Table, type TableProps } from './table.tsx';

/**
 * The look of a column. Only the heading uses `width`, `isSorted` and `spoken`. The heading and the cells use `number`, `notNarrow` and
 * `onlyWide`. Only the cells use the other members. `look` returns what one cell uses besides.
 */
interface ColumnLook<T> extends Omit<Column, 'name'> {
  readonly look?: (item: T) => Look & { readonly title?: string };
}

/** A column with the contents of its cells. */
interface DataColumn<T> {
  readonly name: ReactNode;
  readonly looks: ColumnLook<T>;
  readonly cell: (item: T) => ReactNode;
}

/** Describes the columns of a table. `column` makes a column of its name, its look and the contents of its cells. */
export type DataColumns<T> = (
  column: (name: ReactNode, looks: ColumnLook<T>, cell: (item: T) => ReactNode) => DataColumn<T>,
) => readonly DataColumn<T>[];

/** Shows a row for each of `items`. The attribute `data-key` of a row has its key. */
export function DataTable<T>({
  items,
  keyOf,
  columns,
  ...table
}: Omit<TableProps, 'columns' | 'grouped' | 'children'> & {
  items: readonly T[];
  keyOf: (item: T) => string;
  columns: DataColumns<T>;
}) {
  const all = columns((name, looks, cell) => ({ name, looks, cell }));
  return (
    <Table
      {...table}
      columns={all.map(({ name, looks: { width, isSorted, spoken, number, notNarrow, onlyWide } }) => {
        return { name, width, isSorted, spoken, number, notNarrow, onlyWide };
      })}
    >
      {items.map((item) => (
        <tr key={keyOf(item)} data-key={keyOf(item)}>
          {all.map(({ looks: { width: _width, isSorted: _sorted, spoken: _spoken, look, ...looks }, cell }, index) => (
            <Cell key={index} {...looks} {...look?.(item)}>
              {cell(item)}
            </Cell>
          ))}
        </tr>
      ))}
    </Table>
  );
}
