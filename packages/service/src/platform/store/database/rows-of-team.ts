import { type Column, defineStatement } from './statement.ts';

/**
 * Defines the statements that read the rows of a team from a table with the columns `team_id` and `id`: `readAll` returns all rows of the
 * team ($1), oldest first, and `readOne` the row with the id $2. `columns` is the SQL of the columns. `condition`: SQL that selects some of
 * the rows.
 */
export function readsOfTeam<const Columns extends Readonly<Record<string, Column<unknown>>>>(
  table: string,
  row: Columns,
  condition?: string,
) {
  const columns = Object.keys(row).join(', ');
  const text = `SELECT ${columns} FROM ${table} WHERE team_id = $1${condition === undefined ? '' : ` AND ${condition}`}`;
  return {
    columns,
    readAll: defineStatement({ name: `read_${table}_of_team`, text: `${text} ORDER BY id`, row }),
    readOne: defineStatement({ name: `read_${table.replace(/s$/, '')}`, text: `${text} AND id = $2`, row }),
  };
}
