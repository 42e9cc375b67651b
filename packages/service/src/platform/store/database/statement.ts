/**
 * Defines statements and declares their result columns beside the SQL. TypeScript infers the type of a row from the declaration. A
 * test prepares each statement on a migrated database and compares the declared names and types with those of the result.
 */

/**
 * A statement with a name of at most 63 characters. The server parses and plans it only once for each connection.
 */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/**
 * A column of a result. `sqlTypes`: its possible SQL types, as `format_type` writes them. `T`: the type of its JavaScript value (see
 * `valueTypes`).
 */
export interface Column<T> {
  readonly sqlTypes: readonly string[];
  /** Never set. This member only gives TypeScript the type `T`. */
  readonly arrivesAs?: T;
}

/** Declares a column of one of the SQL types. */
const column = <T>(...sqlTypes: string[]): Column<T> => ({ sqlTypes });

export const uuid: Column<string> = column('uuid');
export const integer: Column<number> = column('integer', 'bigint', 'smallint');
export const float: Column<number> = column('double precision', 'real');
/** A number as text, because a JavaScript number would not be exact. */
export const numeric: Column<string> = column('numeric');
export const boolean: Column<boolean> = column('boolean');
/** RFC 3339 in UTC with six digits of a second. */
export const timestamp: Column<string> = column('timestamp with time zone');
export const bytes: Column<Buffer> = column('bytea');

/** Declares text. `T`: the words that the table allows in this column; default: any text. */
export const text = <T extends string = string>(): Column<T> => column('text', 'character varying');

/** Declares a column with JSON, which arrives parsed. The code that writes the column guarantees the type `T`. */
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

/** All statements of the loaded modules, in the order of their definition. `statements.test.ts` checks them. */
export const definedStatements: TypedStatement<object>[] = [];

/**
 * Defines a named statement and declares the columns of its result. `statements.test.ts` fails if a declared column is missing in the
 * result or has another type.
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
