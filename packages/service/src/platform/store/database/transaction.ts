/**
 * Runs transactions that wait for an answer of the server as rarely as possible. Each wait takes longer than the network needs: when
 * the answer arrives, the process first handles earlier requests, and the server holds the locks of the transaction meanwhile.
 */
import type pg from 'pg';
import { afterCommit, type Queryable, type Transaction } from './database.ts';
import type { NoticeSet } from './notices.ts';
import { run, send } from './send.ts';
import type { Statement } from './statement.ts';

const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE';

interface Sent {
  readonly statement: Statement;
  readonly values: readonly unknown[];
}

/**
 * Runs `work` in a transaction on the connection `client`. Sends nothing if `work` sends no statement. Calls `tell` after the commit, with
 * the notices of all statements.
 */
export async function inTransaction<T>(
  client: pg.PoolClient,
  work: (tx: Transaction) => Promise<T>,
  tell: (notices: NoticeSet) => void,
): Promise<T> {
  const last: Sent[] = [];
  const committed: (() => void)[] = [];
  const notices: NoticeSet = new Set();
  let begun: Promise<unknown> | undefined;
  let isOver = false;
  // Send no statement before the answer to BEGIN: if BEGIN has failed, the statement would commit by itself.
  const query = async <Row extends object>(statement: Statement | string, values?: readonly unknown[]) => {
    if (!isOver) begun ??= send(client, begin);
    await begun;
    if (isOver) throw new Error('the transaction has ended');
    return await run<Row>(client, statement, values, notices);
  };
  try {
    const result = await work({
      query,
      atCommit: (statement, values = []) => void last.push({ statement, values }),
      afterCommit: (then) => void committed.push(then),
    });
    if (last.length > 0) begun ??= send(client, begin);
    await begun;
    isOver = true;
    if (begun) await commit(client, last, notices);
    for (const then of committed) then();
    tell(notices);
    return result;
  } catch (error) {
    isOver = true;
    if (begun) await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

async function commit(client: pg.PoolClient, last: readonly Sent[], notices: NoticeSet): Promise<void> {
  const answers = last.map(({ statement, values }) => run(client, statement, values, notices));
  const committed = send(client, 'COMMIT');
  // Throw the error of the first failed statement. Later statements only fail because the server refuses them after the first failure.
  for (const answer of await Promise.allSettled([...answers, committed]))
    if (answer.status === 'rejected') throw answer.reason;
  const { command } = await committed;
  // If `work` has caught the error of a failed statement, COMMIT rolls the transaction back and reports no error.
  if (command !== 'COMMIT') throw new Error('the transaction was rolled back: a statement in it had failed');
}

/**
 * Runs `work` as a part of the caller's transaction. The statements that `work` adds with `atCommit` are sent when `work` has ended,
 * before the commit.
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
