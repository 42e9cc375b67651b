/**
 * Statements whose result columns are declared beside their SQL. TypeScript infers the type of a row from the declaration. A test prepares
 * each statement on a migrated database and compares names and types of its columns.
 */
import type { Statement } from './database.ts';

/** A column of a result: the SQL types that it may have, as `format_type` writes them, and how it arrives (`valueTypes`). */
export interface Column<T> {
  readonly sqlTypes: readonly string[];
  /** Never set: it only carries the TypeScript type. */
  readonly arrivesAs?: T;
}

/** Declares a column of one of the SQL types. */
const column = <T>(...sqlTypes: string[]): Column<T> => ({ sqlTypes });

export const uuid: Column<string> = column('uuid');
export const integer: Column<number> = column('integer', 'bigint', 'smallint');
export const float: Column<number> = column('double precision', 'real');
/** Exact text, as `numeric` arrives. */
export const numeric: Column<string> = column('numeric');
export const boolean: Column<boolean> = column('boolean');
/** RFC 3339 in UTC with six digits of a second. */
export const timestamp: Column<string> = column('timestamp with time zone');
export const bytes: Column<Buffer> = column('bytea');

/** Declares text, or one of the given words if the table allows no others. */
export const text = <T extends string = string>(): Column<T> => column('text', 'character varying');

/** Declares parsed JSON of a type that the writer of the column guarantees. */
export const json = <T>(): Column<T> => column('jsonb', 'json');

export const texts: Column<string[]> = column('text[]');
export const uuids: Column<string[]> = column('uuid[]');

/** Declares a column that may be NULL. */
export const nullable = <T>({ sqlTypes }: Column<T>): Column<T | null> => ({ sqlTypes });

/** A statement with declared result columns. */
export interface TypedStatement<Row extends object> extends Statement {
  readonly row: { readonly [Name in keyof Row]: Column<Row[Name]> };
}

/** The type of a row that the statement returns. */
export type RowOf<S extends TypedStatement<object>> = S extends TypedStatement<infer Row> ? Row : never;

type RowTypes<Columns> = { -readonly [Name in keyof Columns]: Columns[Name] extends Column<infer T> ? T : never };

/** All statements of the loaded modules, in the order of their definition; a test checks them. */
export const definedStatements: TypedStatement<object>[] = [];

/**
 * Defines a named statement and declares the columns of its result. The test of all statements fails if a declared column is missing
 * in the result or has another type there.
 *
 * @example
 * const readTitle = defineStatement({
 *   name: 'read_title',
 *   text: 'SELECT title, ended_at FROM runs WHERE id = $1',
 *   row: { title: text(), ended_at: nullable(timestamp) },
 * });
 * const [run] = await db.query(readTitle, [runId]); // { title: string; ended_at: string | null } | undefined
 */
export function defineStatement<const Columns extends Readonly<Record<string, Column<unknown>>>>(
  definition: Statement & { readonly row: Columns },
): TypedStatement<RowTypes<Columns>> {
  const statement = definition as unknown as TypedStatement<RowTypes<Columns>>;
  definedStatements.push(statement as TypedStatement<object>);
  return statement;
}
