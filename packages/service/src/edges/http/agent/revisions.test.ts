/** A run executes the revisions of its contents that were current when the run was created, even if the contents change while the run
 * waits. */
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { afterEach, expect, test } from 'vitest';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { deleteRows } from '../../../../test/retention.ts';
import { openTestService } from '../../../../test/service.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { acceptancesDomain } from '../../../team/acceptances/domain.ts';
import { listWaiting } from '../../../team/acceptances/waiting.ts';

const service = await openTestService();
const { db } = service.deps;
await db.query('UPDATE teams SET max_concurrent_executions = 10000');
const colleague = await newPerson(service, await teamUidOf(service), 'member');

afterEach(() => db.query(`UPDATE executions SET phase = 'ended' WHERE phase = 'queued'`));

const environment = async (config: object, key = service.key) =>
  (await service.request<{ uid: string }>('POST', '/agent/environments', { key, body: { config } })).body.uid;
const change = (uid: string, config: object, key = colleague.key) =>
  service.request('PUT', `/agent/environments/${uid}`, { key, body: { config } });
const taskOf = async (runId: string) => {
  const { runToken } = await service.claimRun(runId);
  const path = '/harness-support/resolve-prompt';
  return (await service.request<AgentTask>('POST', path, { key: runToken, body: {} })).body;
};
const revisions = (uid: string) =>
  db.query<{ revision: number; author_uid: string }>(
    'SELECT revision, author_uid FROM content_revisions WHERE uid = $1 ORDER BY revision',
    [uid],
  );

test('a waiting run executes the environment that it was created with', async () => {
  const uid = await environment({
    name: 'E',
    setup_commands: ['echo first'],
    system: 'debian',
    network: { allowed_hosts: ['a.example'] },
  });
  const runId = await service.newRun({ prompt: 'a', config: { environment_id: uid } });
  const changed = { name: 'E', setup_commands: ['echo second'], docker_image: 'node:24' };
  expect((await change(uid, changed)).status).toBe(200);
  const assignment = await service.claimRun(runId);
  expect(assignment).toMatchObject({ network: { allowed_hosts: ['a.example'] }, system: 'debian', image: null });
  const path = '/harness-support/resolve-prompt';
  const { body } = await service.request<AgentTask>('POST', path, { key: assignment.runToken, body: {} });
  expect(body.environment?.config.setup_commands).toEqual(['echo first']);
  const later = await service.newRun({ prompt: 'a', config: { environment_id: uid } });
  const [next] = await db.query<{ image: string }>('SELECT image FROM executions WHERE run_id = $1', [later]);
  expect(next?.image).toBe('node:24');
});

test('a run without a recorded revision does not execute a later environment', async () => {
  const uid = await environment({ name: 'E', setup_commands: ['echo first'] });
  const runId = await service.newRun({ prompt: 'a', config: { environment_id: uid } });
  await db.query(
    "WITH request AS (UPDATE run_requests SET rights = NULL, contents = '[]' WHERE run_id = $1) UPDATE runs SET environment_revision = NULL WHERE id = $1",
    [runId],
  );
  await change(uid, { name: 'E', setup_commands: ['curl evil'] });
  expect((await taskOf(runId)).environment?.config.setup_commands).toEqual(['echo first']);
});

test('a write makes a revision that names the author of the write, unless it changes nothing', async () => {
  const uid = await environment({ name: 'E' });
  await change(uid, { name: 'E' });
  expect(await revisions(uid)).toHaveLength(1);
  await change(uid, { name: 'F' });
  expect(await revisions(uid)).toMatchObject([{ revision: 1 }, { revision: 2, author_uid: colleague.uid }]);
});

test('a run whose environment was deleted does not execute an earlier revision of it', async () => {
  const uid = await environment({ name: 'E', setup_commands: ['echo first'] });
  const runId = await service.newRun({ prompt: 'a', config: { environment_id: uid } });
  await service.request('DELETE', `/agent/environments/${uid}`);
  expect((await taskOf(runId)).environment).toBeUndefined();
});
test('if a content changes often, its last hundred revisions and all revisions that are still needed are stored', async () => {
  const uid = await environment({ name: 'E', setup_commands: ['echo needed'] });
  const runId = await service.newRun({ prompt: 'a', config: { environment_id: uid } });
  await db.query(
    `DO $$ BEGIN FOR n IN 1..125 LOOP UPDATE environments SET config = jsonb_build_object('name', n::text) WHERE uid = '${uid}'; END LOOP; END $$`,
  );
  const keptRevisions = await revisions(uid);
  expect(keptRevisions.map(({ revision }) => revision).slice(0, 3)).toEqual([1, 21, 22]);
  expect((await taskOf(runId)).environment?.config.setup_commands).toEqual(['echo needed']);
});

test('few earlier revisions of a large content are stored', async () => {
  const uid = await environment({ name: 'E' });
  await db.query('ALTER TABLE content_revisions ALTER COLUMN content SET STORAGE EXTERNAL');
  await db.query(
    `DO $$ BEGIN FOR n IN 1..9 LOOP UPDATE environments SET config = jsonb_build_object('name', n || repeat('x', 2000000))
      WHERE uid = '${uid}'; END LOOP; END $$`,
  );
  expect((await revisions(uid)).map(({ revision }) => revision)).toEqual([5, 6, 7, 8, 9, 10]);
});

test('the list of waiting acceptances reads only the contents that it shows', async () => {
  for (const letter of ['a', 'b', 'c', 'd'])
    await environment({ name: 'Large', description: letter.repeat(700_000) }, colleague.key);
  const [row] = await db.query<{ team: string }>(
    `UPDATE content_revisions SET texts = replace(texts::text, '${colleague.uid}', 'gone')::jsonb WHERE content->>'name' = 'Large'
     RETURNING team_id AS team`,
  );
  let length = 0;
  const query: Queryable['query'] = async (...parameters: Parameters<typeof db.query>) => {
    const rows = await db.query(...parameters);
    length += JSON.stringify(rows).length;
    return rows;
  };
  const reader = { teamId: row?.team ?? '', creator: { kind: 'user' as const, uid: 'new' } };
  const waiting = (await listWaiting({ query } as Queryable, reader, { kind: 'environment' })).slice(0, 4);
  expect(waiting.map(({ difference }) => difference !== undefined)).toEqual([true, false, false, false]);
  expect(length).toBeLessThan(1_600_000);
});

test('contents that are deleted together have no current revision', async () => {
  const uids = [await environment({ name: 'E' }), await environment({ name: 'F' })];
  await db.query('DELETE FROM environments WHERE uid = ANY($1)', [uids]);
  const ended = await db.query('SELECT FROM content_revisions WHERE uid = ANY($1) AND superseded_at IS NOT NULL', [
    uids,
  ]);
  expect(ended).toHaveLength(2);
});

test('a revision is deleted 90 days after the next one, unless a person has accepted it or a run executes it', async () => {
  const uid = await environment({ name: 'E', setup_commands: ['echo 1'] });
  const runId = await service.newRun({ prompt: 'a', config: { environment_id: uid } });
  for (const name of ['F', 'G', 'H']) {
    await change(uid, { name });
    const [present] = (await revisions(uid)).slice(-1);
    const body = { kind: 'environment', uid, revision: present?.revision };
    if (name === 'F') await service.request('POST', '/acceptances', { body });
  }
  const sweep = async () => {
    for (const rule of acceptancesDomain({ db }, { list: async () => [], accept: async () => ({ kind: 'not_found' }) })
      .retention?.rows ?? [])
      await deleteRows(db, rule);
    return (await revisions(uid)).map(({ revision }) => revision);
  };
  expect(await sweep()).toEqual([1, 2, 3, 4]);
  await db.query(
    `UPDATE content_revisions SET superseded_at = superseded_at - interval '91 days' WHERE superseded_at IS NOT NULL`,
  );
  expect(await sweep()).toEqual([1, 2, 4]);
  await db.query(`UPDATE runs SET state = 'SUCCEEDED' WHERE id = $1`, [runId]);
  expect(await sweep()).toEqual([2, 4]);
  await service.request('DELETE', `/agent/environments/${uid}`);
  await db.query(`UPDATE content_revisions SET superseded_at = now() - interval '91 days' WHERE uid = $1`, [uid]);
  expect(await sweep()).toEqual([]);
});
