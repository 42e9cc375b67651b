import type pg from 'pg';
import type { Shares } from './shares.ts';
import type { Statement, TypedStatement } from './statement.ts';

export interface Queryable {
  /** Returns the rows of a statement that declares the columns of its result. */
  query<Row extends object>(statement: TypedStatement<Row>, values?: readonly unknown[]): Promise<Row[]>;
  /**
   * Returns the rows of one statement. `valueTypes` in `connections.ts` shows which JavaScript value each SQL type becomes. A plain
   * string is sent as a statement without a name. PostgreSQL uses one plan of a statement for all values; if the best plan depends on
   * the values, use `planned-by-values.ts`. Throws
   * `StoreUnavailable` if the connection is lost or the server's disk is full.
   */
  query<Row extends object = Record<string, unknown>>(
    statement: Statement | string,
    values?: readonly unknown[],
  ): Promise<Row[]>;
  /**
   * Calls `work` after the transaction has committed. Does not call it after a rollback. Absent: this is not a transaction, and each
   * statement commits by itself.
   */
  afterCommit?(work: () => void): void;
}

/**
 * Calls `work` when the writes before this call are committed: after the transaction, or at once if `db` is not a transaction. Used
 * for measurements.
 */
export function afterCommit(db: Queryable, work: () => void): void {
  if (db.afterCommit) db.afterCommit(work);
  else work();
}

export interface Transaction extends Queryable {
  /**
   * Adds a statement that is sent together with COMMIT, after `work` has ended. If such a statement fails, the transaction is rolled
   * back and rejects with the error of the statement.
   */
  atCommit(statement: Statement, values?: readonly unknown[]): void;
}

export interface Database extends Queryable {
  readonly pool: pg.Pool;
  /** The shares of the teams in the pool. */
  readonly shares: Pick<Shares, 'waiting'>;
  /**
   * Opens a connection outside of the pool, whose statements have no time limits. Use it for work that may take long, such as COPY and
   * migrations.
   */
  onOwnConnection<T>(work: (client: pg.Client) => Promise<T>): Promise<T>;
  /**
   * Runs `work` in one transaction (READ COMMITTED) and commits. After a serialization failure or a deadlock, `work` is repeated, so
   * it may run up to 5 times. If `work` throws, the transaction is rolled back and the error is thrown.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /**
   * Calls `onNotify` for each NOTIFY on the channel, and for each notice that this process sends after a commit (see `notices.ts`). Calls `onReconnect` after an outage, because notices may be lost during the outage.
   * Resolves when notices can arrive, with a function that stops listening.
   */
  listen(channel: string, onNotify: (payload: string) => void, onReconnect?: () => void): Promise<() => void>;
  /**
   * Says whether no other process uses the database. While `isAlone` is true, notices that are sent after commits reach only this process.
   * Before the first call, the process counts as not alone.
   */
  setAlone(isAlone: boolean): void;
  /** Waits for the statements in progress, and then closes all connections. */
  close(): Promise<void>;
}
