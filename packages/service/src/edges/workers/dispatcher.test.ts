import { beforeEach, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { openTestExecutions, type TestExecutions } from '../../../test/executions.ts';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { StoreUnavailable } from '../../platform/store/database/unavailable.ts';
import { makeDispatcher } from './dispatcher.ts';
import { makeConnection, type OpenConnection } from './open-connection.ts';

let t: TestExecutions;
beforeEach(async () => {
  t = closeAtEnd(await openTestExecutions());
});

test('a connection that is lost while the database fails does not delay the assignments of other connections', async () => {
  const connections = new Map<string, OpenConnection>();
  const sent: string[] = [];
  for (let n = 0; n < 2; n += 1) {
    const id = await t.newConnection();
    const connection = makeConnection({ id, workerId: `runyard-${id}`, teamId: null, send: () => void sent.push(id) });
    connections.set(id, Object.assign(connection, { ready: true, slots: 1 }));
    await t.newRun();
  }
  const { db } = t.deps;
  const query: Queryable['query'] = async (statement, values) => {
    const name = typeof statement === 'string' ? '' : statement.name;
    if (name === 'transition_requeue') throw new StoreUnavailable('database', new Error('gone'));
    const rows = await db.query(statement, values);
    if (name === 'transition_assign') connections.delete([...connections.keys()][0] ?? '');
    return rows as never;
  };
  const dispatcher = makeDispatcher({ ...t.deps, db: { ...db, query } as Database }, connections, () => []);
  await expect(dispatcher.dispatch()).rejects.toThrow(StoreUnavailable);
  expect(sent).toEqual([...connections.keys()]);
});
