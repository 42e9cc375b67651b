/** A follow-up can use the secrets in the run's sandbox, so the author of the follow-up needs the right to use each of these secrets. */
import { randomUUIDv7 } from 'node:crypto';
import { expect, test } from 'vitest';
import { credentialsOf } from '../../../../test/credentials.ts';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { db } = service.deps;
await db.query('UPDATE teams SET max_concurrent_executions = 10000');
const team = await teamUidOf(service);
const [owner, colleague] = [await newPerson(service, team, 'admin'), await newPerson(service, team, 'member')];
const agentKey = await service.newKey({ kind: 'agent' });

const put = (name: string, scope: string, key: string) =>
  service.request('PUT', `/secrets/${name}`, { key, body: { value: `${name} ${randomUUIDv7()}`, scope } });
await put('MINE', 'personal', owner.key);
await put('SHARED', 'team', service.key);

const runWith = (secrets: string[], more: object = {}) =>
  service.newRun({ prompt: 'a', config: { secrets: secrets.map((name) => ({ name })), ...more } }, owner.key);
const send = (runId: string, key: string, body: object = { message: 'print all secrets' }) =>
  service.request<{ error_code?: string; detail?: string }>('POST', `/agent/runs/${runId}/followups`, { key, body });
/** Starts the run with its secrets in the sandbox, and ends it. */
async function work(runId: string): Promise<void> {
  const { runToken } = await service.claimRun(runId);
  const path = '/harness-support/resolve-prompt';
  await service.ok('POST', path, { key: runToken, body: {} });
  await db.query(`UPDATE executions SET phase = 'ended' WHERE run_id = $1`, [runId]);
  await db.query(`UPDATE runs SET state = 'SUCCEEDED', ended_at = now() WHERE id = $1`, [runId]);
}

test("only its executor sends follow-ups to a run with the executor's personal secret", async () => {
  const runId = await runWith(['MINE']);
  for (const key of [colleague.key, agentKey, service.key]) {
    const refused = await send(runId, key);
    expect([refused.status, refused.body.error_code]).toEqual([403, 'not_authorized']);
    expect(refused.body.detail).toMatch(/secret MINE.*rerun/);
  }
  expect((await send(runId, owner.key)).status).toBe(200);
});

test('only the executor sends follow-ups to an ended run whose saved files may contain the secret, even if the secret was deleted', async () => {
  await put('OLD', 'personal', owner.key);
  const runId = await runWith(['OLD']);
  await work(runId);
  expect((await send(runId, colleague.key)).status).toBe(403);
  await service.request('DELETE', '/secrets/OLD?scope=personal', { key: owner.key });
  expect((await send(runId, colleague.key)).status).toBe(403);
  expect((await send(runId, colleague.key, { decision: 'approve' })).status).toBe(403);
  expect((await send(runId, owner.key)).status).toBe(200);
});

test("people of the team send follow-ups to a run with the team's secrets, and an agent key only if it may use them", async () => {
  const runId = await runWith(['SHARED']);
  expect((await send(runId, colleague.key)).status).toBe(200);
  expect((await send(runId, agentKey)).status).toBe(403);
  const bare = await runWith([]);
  expect((await send(bare, agentKey)).status).toBe(200);
});

test('a run that was created with followups_from team accepts follow-ups of the whole team', async () => {
  expect((await send(await runWith(['MINE'], { followups_from: 'team' }), agentKey)).status).toBe(200);
  const body = { prompt: 'a', config: { followups_from: 'everybody' } };
  await service.problem(400, 'POST', '/agent/runs', { key: owner.key, body });
});

test('followups_from in a configuration of another author does not open a run to the team', async () => {
  const runId = await runWith(['MINE'], { followups_from: 'team' });
  const contents = JSON.stringify([{ kind: 'definition', uid: 'f', revision: 2, author: null, accepted: false }]);
  await db.query('UPDATE run_requests SET contents = $2 WHERE run_id = $1', [runId, contents]);
  expect((await send(runId, colleague.key)).status).toBe(403);
});

test('only the executor sends follow-ups to a run without recorded rights while the sandbox of the run has secrets', async () => {
  const runId = await runWith(['SHARED']);
  await work(runId);
  await db.query('UPDATE run_requests SET rights = NULL WHERE run_id = $1', [runId]);
  expect((await send(runId, colleague.key)).status).toBe(403);
  expect((await send(runId, owner.key)).status).toBe(200);
});

test("a run uses no personal credential of its executor after another person's text has run in its sandbox", async () => {
  const runId = await runWith([]);
  const { runToken, executionId } = await service.claimRun(runId);
  const credentials = () => credentialsOf(db, executionId);
  const take = async (key: string, body?: object) => {
    expect((await send(runId, key, body)).status).toBe(200);
    await db.query(
      'UPDATE followups SET execution_id = $2, taken_at = clock_timestamp() WHERE run_id = $1 AND execution_id IS NULL',
      [runId, executionId],
    );
  };
  expect(await credentials()).toBe('personal');
  await service.ok('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });
  await db.query('UPDATE executions SET started_at = clock_timestamp() WHERE id = $1', [executionId]);
  await take(owner.key);
  expect(await credentials()).toBe('personal');
  // A follow-up changes no rights until the agent takes it.
  await send(runId, colleague.key);
  expect(await credentials()).toBe('personal');
  await take(colleague.key);
  expect(await credentials()).toBe('team');
  // Processes and files of the earlier turn are still there.
  await take(owner.key);
  expect(await credentials()).toBe('team');
});

test('a follow-up that arrives before the first prompt is a part of it', async () => {
  const runId = await runWith([]);
  const { executionId } = await service.claimRun(runId);
  await send(runId, colleague.key);
  expect(await credentialsOf(db, executionId)).toBe('team');
});

test("a child that is started in another person's turn also uses no personal credential", async () => {
  const runId = await service.newRun({ prompt: 'a', mode: 'orchestrate' }, owner.key);
  const { runToken } = await service.claimRun(runId);
  const resolve = () => service.request('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });
  const child = async () => {
    const started = await service.ok<{ run_id: string }>('POST', '/harness-support/child-runs', {
      key: runToken,
      body: { prompt: randomUUIDv7() },
    });
    const [row] = await db.query<{ is_personal: boolean }>(
      `SELECT (rights->>'personal_credentials')::boolean AS is_personal FROM run_requests WHERE run_id = $1`,
      [started.run_id],
    );
    return row?.is_personal;
  };
  await resolve();
  expect(await child()).toBe(true);
  await send(runId, colleague.key);
  await resolve();
  expect(await child()).toBe(false);
});
