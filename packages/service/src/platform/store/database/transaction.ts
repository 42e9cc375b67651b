/**
 * Transactions that wait for the server as seldom as they can. Each wait for an answer takes longer than the network needs: the process
 * first handles earlier requests, while the server holds the locks of the transaction.
 */
import type pg from 'pg';
import { afterCommit, type Queryable, type Statement } from './database.ts';
import { run, send } from './send.ts';

export interface Transaction extends Queryable {
  /**
   * Adds a statement that is sent together with COMMIT, after `work` has ended. If such a statement fails, the transaction is rolled
   * back and throws the error of the statement.
   */
  atCommit(statement: Statement, values?: readonly unknown[]): void;
}

const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE';

interface Sent {
  readonly statement: Statement;
  readonly values: readonly unknown[];
}

/** Runs `work` in a transaction of the connection. A transaction without statements sends nothing. */
export async function inTransaction<T>(client: pg.PoolClient, work: (tx: Transaction) => Promise<T>): Promise<T> {
  const last: Sent[] = [];
  const committed: (() => void)[] = [];
  let begun: Promise<unknown> | undefined;
  /**
   * The answer to BEGIN. Every statement that may not run outside of the transaction waits for it, and so do all later statements.    *
   * Absent: no statement had to wait yet.
   */
  let ready: Promise<unknown> | undefined;
  let refusal: unknown;
  const beginOnce = () => {
    begun ??= send(client, begin).catch((error: unknown) => {
      refusal = error;
    });
    return begun;
  };
  const query = async <Row extends object>(statement: Statement | string, values?: readonly unknown[]) => {
    const answered = beginOnce();
    if (!leavesNothing(statement)) ready ??= answered;
    if (ready) await ready;
    // If BEGIN failed, a statement would commit by itself.
    if (refusal) throw refusal;
    return await run<Row>(client, statement, values);
  };
  try {
    const result = await work({
      query,
      atCommit: (statement, values = []) => void last.push({ statement, values }),
      afterCommit: (then) => void committed.push(then),
    });
    if (begun || last.length > 0) await beginOnce();
    if (refusal) throw refusal;
    if (begun) await commit(client, last);
    for (const then of committed) then();
    return result;
  } catch (error) {
    if (begun) await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

async function commit(client: pg.PoolClient, last: readonly Sent[]): Promise<void> {
  const answers = last.map(({ statement, values }) => run(client, statement, values));
  const committed = send(client, 'COMMIT');
  // The first failed statement shows the cause; the server refuses the others as a consequence.
  for (const answer of await Promise.allSettled([...answers, committed]))
    if (answer.status === 'rejected') throw answer.reason;
  const { command } = await committed;
  // After a failed statement whose error was caught, COMMIT rolls the transaction back without an error.
  if (command !== 'COMMIT') throw new Error('the transaction was rolled back: a statement in it had failed');
}

/**
 * Runs the work inside the caller's transaction. Rows that `work` adds for the commit are sent after `work` has ended.
 */
export async function withinTransaction<T>(tx: Queryable, work: (tx: Transaction) => Promise<T>): Promise<T> {
  const last: Sent[] = [];
  const query = <Row extends object>(statement: Statement | string, values?: readonly unknown[]) =>
    tx.query<Row>(statement, values);
  const result = await work({
    query,
    atCommit: (statement, values = []) => void last.push({ statement, values }),
    afterCommit: (then) => afterCommit(tx, then),
  });
  for (const { statement, values } of last) await tx.query(statement, values);
  return result;
}

const known = new WeakMap<Statement, boolean>();

/**
 * Returns whether a statement that runs outside of a transaction has no lasting effect: it only reads, or takes locks that end with the
 * statement. Such a statement may be sent before BEGIN is answered. `statements.test.ts` compares this with the plans of all statements.
 */
export function leavesNothing(statement: Statement | string): boolean {
  if (typeof statement === 'string') return false;
  const answer = known.get(statement) ?? readsOnly(statement.text);
  known.set(statement, answer);
  return answer;
}

const writingWords =
  /\b(INSERT|DELETE|MERGE|SET|INTO|pg_notify|set_config|nextval|gin_clean_pending_list|recount_team_storage|pg_\w*advisory_(un)?lock\w*)\b/i;

const readsOnly = (sql: string): boolean => /^\s*(SELECT|WITH)\b/.test(sql) && !writingWords.test(sql);
