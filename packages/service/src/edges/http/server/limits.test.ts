import { maxEnvironments, maxKeys, maxWaitingFollowups } from '@runyard/contract/limits';
import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService({ env: { RUNYARD_RUN_EVENTS_MB: '1', RUNYARD_RUN_ARTIFACTS_MB: '1' } });

const at = '2026-01-02T03:04:05.000Z';
const send = (key: string, ...events: object[]) =>
  service.request('POST', '/harness-support/events', {
    key,
    body: { events: events.map((event, index) => ({ seq: index + 1, occurred_at: at, ...event })) },
  });

test('the run, its timeline and its conversation report that data was not stored', async () => {
  const { runId, runToken } = await service.startExecution();
  expect((await service.request('GET', `/agent/runs/${runId}`)).body).not.toHaveProperty('dropped_output');
  const text = { type: 'text', step_id: 's', message_id: 'm', role: 'assistant', text: 'x'.repeat(600_000) };
  const sent = await send(runToken, { type: 'turn_started', step_id: 's', prompt: 'Do it.' }, text, text, text);
  expect(sent.body).toEqual({ acknowledged: 4 });
  const dropped_output = { events: 2, transcript_lines: 0 };
  expect((await service.request('GET', `/agent/runs/${runId}`)).body).toMatchObject({ dropped_output });
  for (const part of ['timeline', 'conversation']) {
    const { body } = await service.request('GET', `/agent/runs/${runId}/${part}`);
    expect(JSON.stringify(body).split('has reached 1 MB')).toHaveLength(2);
  }
});

test('a run accepts a limited number of waiting follow-ups, and more after its agent has taken one', async () => {
  const { runId, runToken } = await service.startExecution();
  const path = `/agent/runs/${runId}/followups`;
  const say = (message: string) => service.request<{ followup_id: string }>('POST', path, { body: { message } });
  const first = (await say('first')).body.followup_id;
  for (let n = 0; n < maxWaitingFollowups - 3; n += 1) expect((await say(`${n}`)).status).toBe(200);
  const last = await Promise.all(Array.from({ length: 8 }, () => say('at once')));
  expect(last.map(({ status }) => status).sort()).toEqual([200, 200, ...Array.from({ length: 6 }, () => 400)]);
  const refused = await service.problem(400, 'POST', path, { body: { message: 'one more' } });
  expect(refused.detail).toContain(`${maxWaitingFollowups} follow-ups are waiting`);
  await send(runToken, { type: 'follow_up_taken', follow_up_id: first });
  expect((await say('now')).status).toBe(200);
});

test('a run with the largest number of waiting follow-ups still accepts the follow-up that continues it', async () => {
  const { runId, runToken } = await service.startExecution();
  const say = () => service.request('POST', `/agent/runs/${runId}/followups`, { body: { message: 'a' } });
  for (let n = 0; n < maxWaitingFollowups; n += 1) await say();
  await service.request('POST', '/harness-support/finish-task', {
    key: runToken,
    body: { success: false, summary: 'x', error: { code: 'agent_process_failed', message: 'x' } },
  });
  expect((await say()).status).toBe(200);
  expect((await service.request('GET', `/agent/runs/${runId}`)).body).toMatchObject({ state: 'QUEUED' });
});

test('the total size of the artifacts of a run is limited, also for concurrent uploads', async () => {
  const { runToken } = await service.startExecution();
  const report = async () => {
    const body = { artifact_type: 'FILE', data: { filename: 'a' } };
    const made = await service.request<{ upload_url: string; artifact_uid: string }>(
      ...(['POST', '/harness-support/report-artifact', { key: runToken, body }] as const),
    );
    return made.body;
  };
  const put = (url: string, bytes: number) =>
    fetch(url, { method: 'PUT', body: new Uint8Array(bytes) }).then(({ status }) => status);
  const targets = await Promise.all([1, 2, 3, 4].map(report));
  const statuses = await Promise.all(targets.map(({ upload_url }) => put(upload_url, 400_000)));
  expect(statuses.sort()).toEqual([200, 200, 413, 413]);
  const small = await report();
  expect(await put(small.upload_url, 200_000)).toBe(200);
  expect(await put(small.upload_url, 200_000), 'the same again is stored already').toBe(200);
  const late = await report();
  const answer = await fetch(late.upload_url, { method: 'PUT', body: new Uint8Array(200_000) });
  expect([answer.status, ((await answer.json()) as { detail: string }).detail]).toEqual([
    413,
    expect.stringContaining('RUNYARD_RUN_ARTIFACTS_MB'),
  ]);
  await service.request('DELETE', `/agent/artifacts/${small.artifact_uid}`);
  expect(await put(late.upload_url, 200_000)).toBe(200);
});

const kinds = [
  ['keys', maxKeys, '/keys', { name: 'k', kind: 'personal' }],
  ['environments', maxEnvironments, '/agent/environments', { config: { name: 'E' } }],
] as const;
const fill: Record<(typeof kinds)[number][0], string> = {
  keys: `INSERT INTO api_keys (id, hash, kind, name, team_id, agent_uid, prefix, last_four)
    SELECT gen_random_uuid(), decode(md5(n::text), 'hex'), 'agent', 'x', $1, 'a', 'p', 'f' FROM generate_series(1, $2) n`,
  environments: `INSERT INTO environments (uid, team_id, config) SELECT left(md5(n::text), 22), $1, '{}' FROM generate_series(1, $2) n`,
};
test.each(kinds)("a team's %s are limited, also for concurrent creates", async (kind, max, path, body) => {
  const { db } = service.deps;
  const table = kind === 'keys' ? 'api_keys' : kind;
  const [team] = await db.query<{ id: string; there: number }>(
    `SELECT id, (SELECT count(*)::int FROM ${table} WHERE team_id = teams.id) AS there FROM teams
     WHERE id = (SELECT team_id FROM runs LIMIT 1)`,
  );
  await db.query(fill[kind], [team?.id, max - (team?.there ?? 0) - 1]);
  const made = await Promise.all(
    [1, 2, 3, 4].map((n) =>
      service.request('POST', path, { body, ...(n === 1 ? { headers: { 'idempotency-key': 'once' } } : {}) }),
    ),
  );
  expect(made.filter(({ status }) => status < 300)).toHaveLength(1);
  const { detail } = await service.problem(409, 'POST', path, { body });
  expect(detail).toContain(`at most ${max}`);
});
