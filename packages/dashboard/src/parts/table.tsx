import type { ComponentProps, ReactNode } from 'react';
import { Card } from './blocks.tsx';
import { box } from './box.tsx';
import looks from './look.module.css';
import { type Look, look, looked } from './look.ts';
import styles from './table.module.css';

/** A column of a table. `spoken`: only screen readers get its name. */
export interface Column extends Look {
  readonly name: ReactNode;
  /** Width in pixels. Columns without a width share the rest. */
  readonly width?: number | undefined;
  /** True: the rows are sorted by this column, the largest first. */
  readonly isSorted?: boolean | undefined;
}

/** A cell of a table, with its look as members. */
export const Cell = box('td');

/** The cell of a run or a schedule: its name and its state in words. */
export const RunCell = box('span', styles.run);

/** The state of a run or a schedule in words, beside its name. */
export const Say = box('span', styles.say, looks.dim);

export type TableProps = Look &
  Omit<ComponentProps<'table'>, 'children' | keyof Look> & {
    columns?: readonly Column[];
    /** True: the table fills its screen. Otherwise it is in a card. */
    bare?: boolean;
    /** True: the table is in a card that also has other content. */
    inCard?: boolean;
    /** True: on narrow pages the screen shows each row as a block. */
    stacked?: boolean;
    /** True: `children` are groups of rows (`tbody`). */
    grouped?: boolean;
    children: ReactNode;
  };

/** Shows rows below the names of their columns. */
export function Table({ columns, bare, inCard, stacked, grouped, children, ...table }: TableProps) {
  const element = (
    <table {...looked(table, styles.table, !bare && styles.inCard, !stacked && styles.scrolls)}>
      {columns && (
        <thead>
          <tr>
            {columns.map(({ name, width, isSorted, spoken, ...looks }, index) => (
              <th key={index} className={look(looks)} style={{ width }} aria-sort={isSorted ? 'descending' : undefined}>
                {spoken ? <span className={look({ spoken })}>{name}</span> : name}
              </th>
            ))}
          </tr>
        </thead>
      )}
      {grouped ? children : <tbody>{children}</tbody>}
    </table>
  );
  return bare || inCard ? element : <Card>{element}</Card>;
}
