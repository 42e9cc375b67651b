import { randomUUIDv7 } from 'node:crypto';
import { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { createTestDatabase } from '../../../../test/database.ts';
import { insertTeam } from '../../../../test/executions.ts';
import { listIdentity, writeCursor } from '../../../platform/store/cursor.ts';
import { listRuns } from './list.ts';

const database = closeAtEnd(await createTestDatabase());

test('a cursor of an earlier version is refused, and the error says so', async () => {
  const teamId = await insertTeam(database);
  const signer = { sign: () => 'signature', verify: () => true };
  const context = { teamId, teamUid: 'x', baseUrl: '' };
  const list = (cursor: string, more: object = {}) =>
    listRuns(database.db, signer, context, ListRunsQuery.parse({ sort_by: 'title', cursor, ...more }));
  const members = [
    ['sort_by', 'title'],
    ['sort_order', 'desc'],
  ];
  const position = { value: 'A title', id: randomUUIDv7() };
  const earlier = writeCursor(signer, listIdentity([teamId, members]), position);
  const faultOf = (message: RegExp) => ({
    kind: 'invalid',
    faults: [{ path: 'cursor', message: expect.stringMatching(message) }],
  });
  expect(await list(earlier)).toMatchObject(faultOf(/earlier version of the service; begin again with the first page/));
  expect(await list(earlier, { sort_order: 'asc' })).toMatchObject(faultOf(/another sort, order or filter/));
  expect(await list('x.signature.y')).toMatchObject(faultOf(/not a cursor of this service/));
  const present = writeCursor(signer, listIdentity([2, teamId, members]), position);
  expect(await list(present)).toMatchObject({ kind: 'ok' });
});
