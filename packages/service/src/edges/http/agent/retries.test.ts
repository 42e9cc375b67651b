import { expect, test } from 'vitest';
import { testChildRuns } from '../../../../test/child-runs.ts';
import { newPerson } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';
import { retryRuns } from '../../../runs/runs/retries/retry-runs.ts';
import { moveStartToRetry } from '../../../triggers/history/write.ts';

const service = await openTestService();
const { db } = service.deps;
const [{ uid: team } = { uid: '' }] = await db.query<{ uid: string }>('SELECT uid FROM teams WHERE id = $1', [
  service.teamId,
]);
const { orchestrator, startChild, begin, finish } = testChildRuns(service);
const at = '2026-01-02T03:04:05.000Z';
const retry = { on: ['checks_failed'], max: 2, backoff_seconds: 0 };

const sweep = () => retryRuns({ ...service.deps, noteRetry: moveStartToRetry }, new Map(), AbortSignal.timeout(60_000));
type Started = Awaited<ReturnType<typeof service.startExecution>>;

/** Ends the turn of a run with an error. */
async function failWith({ runToken: key }: Started, code = 'checks_failed'): Promise<void> {
  const started = { seq: 1, occurred_at: at, type: 'agent_started', harness: 'oz', model_id: 'runbook' };
  await service.report(key, [started]);
  const error = { code, message: 'It failed.', retried: true };
  const body = { turn: 1, success: false, summary: '', error };
  await service.request('POST', '/harness-support/finish-task', { key, body });
}
async function failedRun(config: object = { retry }, key?: string): Promise<string> {
  const run = await service.claimRun(await service.newRun({ config }, key));
  await failWith(run);
  return run.runId;
}
const read = async (runId: string) => await service.ok<Record<string, unknown>>('GET', `/agent/runs/${runId}`);
const retriesOf = async (runId: string) =>
  (await db.query<{ id: string }>('SELECT id FROM runs WHERE retry_of = $1', [runId])).map(({ id }) => id);
const eventsOf = async (runId: string) => {
  const path = `/agent/runs/${runId}/timeline`;
  type Answer = { events: { event_type: string; payload?: Record<string, unknown> }[] };
  const { events } = await service.ok<Answer>('GET', path);
  return events.filter(({ event_type }) => /run_(not_)?retried/.test(event_type));
};

test('a failed run is repeated once, however many processes look for due retries', async () => {
  const runId = await failedRun();
  await Promise.all([sweep(), sweep(), sweep(), sweep()]);
  await sweep();
  const [retryId = '', ...others] = await retriesOf(runId);
  expect(others).toEqual([]);
  expect(await read(retryId)).toMatchObject({
    state: 'QUEUED',
    retry_of: runId,
    prompt: 'Do it',
    agent_config: { retry: { ...retry, max: 1 } },
  });
  expect(await eventsOf(runId)).toMatchObject([{ event_type: 'run_retried', payload: { retry_run_id: retryId } }]);
});

test('if a process dies before the commit of a retry, nothing is left, and the next process writes the retry once', async () => {
  const runId = await failedRun();
  const die = () => Promise.reject(new Error('the process is killed here'));
  await retryRuns({ ...service.deps, noteRetry: die }, new Map(), AbortSignal.timeout(60_000));
  expect([await retriesOf(runId), await eventsOf(runId)]).toEqual([[], []]);
  await sweep();
  await sweep();
  expect([await retriesOf(runId), await eventsOf(runId)]).toMatchObject([
    [expect.any(String)],
    [{ event_type: 'run_retried' }],
  ]);
});

test('a chain of retries ends at its maximum, or when the money of its first run is spent', async () => {
  let runId = await failedRun();
  const chain = [runId];
  for (;;) {
    await sweep();
    const [next] = await retriesOf(runId);
    if (next === undefined) break;
    chain.push(next);
    await failWith(await service.claimRun(next));
    runId = next;
  }
  expect(chain).toHaveLength(3);
  expect(await read(runId)).not.toHaveProperty('agent_config.retry');
  const costly = await failedRun({ retry, max_cost_usd: 1 });
  await db.query(
    'INSERT INTO run_spend (run_id, spent_usd) VALUES ($1, 0.75) ON CONFLICT (run_id) DO UPDATE SET spent_usd = 0.75',
    [costly],
  );
  await sweep();
  const [second = ''] = await retriesOf(costly);
  expect(await read(second)).toMatchObject({ agent_config: { max_cost_usd: 0.25 } });
  await failWith(await service.claimRun(second));
  await db.query(
    'INSERT INTO run_spend (run_id, spent_usd) VALUES ($1, 0.25) ON CONFLICT (run_id) DO UPDATE SET spent_usd = 0.25',
    [second],
  );
  await sweep();
  expect(await retriesOf(second)).toEqual([]);
  expect(await eventsOf(second)).toMatchObject([
    { event_type: 'run_not_retried', payload: { reason: expect.stringContaining('max_cost_usd') } },
  ]);
});

test('a run is repeated only after a code that it names, after its wait, and not if a person has continued it', async () => {
  const other = await service.claimRun(await service.newRun({ config: { retry } }));
  await failWith(other, 'result_invalid');
  const cancelled = await service.newRun({ config: { retry } });
  await service.request('POST', `/agent/runs/${cancelled}/cancel`, {});
  const later = await failedRun({ retry: { ...retry, backoff_seconds: 3600 } });
  const continued = await failedRun();
  await service.request('POST', `/agent/runs/${continued}/followups`, { body: { message: 'Go on.' } });
  await sweep();
  for (const runId of [other.runId, cancelled, later, continued]) expect(await retriesOf(runId)).toEqual([]);
  await db.query(`UPDATE run_retries SET due_at = now() WHERE run_id = $1`, [later]);
  await sweep();
  expect(await retriesOf(later)).toHaveLength(1);
});

test('a run of somebody who left the team or lost a right is not repeated, and its timeline has the reason', async () => {
  const leaver = await newPerson(service, team, 'member');
  const ofLeaver = await failedRun({ retry }, leaver.key);
  await service.request('DELETE', `/teams/${team}/members/${leaver.uid}`);
  await service.request('PUT', '/secrets/GONE', { body: { value: 'a secret value', scope: 'team' } });
  const withSecret = await failedRun({ retry, secrets: [{ name: 'GONE' }] });
  await service.request('DELETE', '/secrets/GONE?scope=team');
  await sweep();
  for (const [runId, reason] of [
    [ofLeaver, 'may no longer start runs'],
    [withSecret, 'GONE'],
  ] as const) {
    expect(await retriesOf(runId)).toEqual([]);
    expect(await eventsOf(runId)).toMatchObject([
      { event_type: 'run_not_retried', payload: { reason: expect.stringContaining(reason) } },
    ]);
  }
});

const notified = async (runId: string) =>
  (await db.query<{ kind: string }>('SELECT kind FROM inbox_items WHERE run_id = $1', [runId])).map(({ kind }) => kind);

test('only the last failure of a chain is in the inbox, also if its retry is given up', async () => {
  const first = await failedRun({ retry: { ...retry, max: 1 } });
  expect(await notified(first)).toEqual([]);
  await sweep();
  const [last = ''] = await retriesOf(first);
  await failWith(await service.claimRun(last));
  expect([await notified(first), await notified(last)]).toEqual([[], ['failed']]);
  const spent = await failedRun({ retry, max_cost_usd: 1 });
  await db.query(
    'INSERT INTO run_spend (run_id, spent_usd) VALUES ($1, 1) ON CONFLICT (run_id) DO UPDATE SET spent_usd = 1',
    [spent],
  );
  expect(await notified(spent)).toEqual([]);
  await sweep();
  expect(await notified(spent)).toEqual(['failed']);
});

test('the retry of a run of a schedule has its place in the history, which the overlap policy counts', async () => {
  const made = await service.request<{ id: string }>('POST', '/agent/schedules', {
    body: { name: 'Nightly', cron_schedule: '@daily', prompt: 'Go.', agent_config: { retry } },
  });
  const path = `/agent/schedules/${made.body.id}`;
  const { run_id: first } = await service.ok<{ run_id: string }>('POST', `${path}/run`);
  await failWith(await service.claimRun(first));
  await sweep();
  const [again = ''] = await retriesOf(first);
  const body = await service.ok<{ fires: { run_id?: string }[] }>('GET', `${path}/history`);
  expect(body.fires.map(({ run_id }) => run_id)).toEqual([again]);
  expect(await read(again)).toMatchObject({ schedule: { schedule_id: made.body.id } });
});

test('the failed runs of a tree are repeated once below their parents, however many requests arrive; the others are left', async () => {
  const parent = await orchestrator();
  const [one, two, three] = [
    await startChild(parent.runToken),
    await startChild(parent.runToken),
    await startChild(parent.runToken),
  ];
  for (const child of [one, two]) await failWith(await service.claimRun(child));
  await begin(three);
  const path = `/agent/runs/${parent.runId}/rerun-failed`;
  type Answer = { reruns: { run_id: string; rerun_run_id: string }[]; refused: object[] };
  const again = async () => await service.ok<Answer>('POST', path);
  const answers = await Promise.all([again(), again(), again()]);
  const reruns = answers.flatMap(({ reruns: each }) => each);
  expect(reruns.map(({ run_id }) => run_id).sort()).toEqual([one, two].sort());
  for (const { run_id, rerun_run_id } of reruns)
    expect(await read(rerun_run_id)).toMatchObject({ rerun_of: run_id, parent_run_id: parent.runId, state: 'QUEUED' });
  expect(await again()).toEqual({ reruns: [], refused: [], has_more: false });
  const ids = reruns.map(({ rerun_run_id }) => rerun_run_id);
  const entries = await db.query('SELECT action FROM audit_entries WHERE subject_uid = ANY($1)', [ids]);
  expect(entries).toEqual([{ action: 'run.create' }, { action: 'run.create' }]);
  const [last] = reruns;
  await failWith(await service.claimRun(last?.rerun_run_id ?? ''));
  expect((await again()).reruns).toMatchObject([{ run_id: last?.rerun_run_id }]);
  await service.problem(404, 'POST', path, { key: service.otherKey });
  await service.problem(403, 'POST', path, { key: (await newPerson(service, team, 'viewer')).key });
  await service.problem(401, 'POST', path, { key: parent.runToken });
  await finish(parent.runToken);
});

test('the retry of a child waits while its parent has as many live children as it may have', async () => {
  const parent = await orchestrator({ config: { child_runs: { enabled: true, max_live: 1 } } });
  const child = await startChild(parent.runToken, { config: { retry } });
  await failWith(await service.claimRun(child));
  await begin(await startChild(parent.runToken));
  await sweep();
  const [again = ''] = await retriesOf(child);
  expect(await db.query('SELECT waits_for_place FROM executions WHERE run_id = $1', [again])).toEqual([
    { waits_for_place: true },
  ]);
  await finish(parent.runToken);
});

test('the retry and the rerun of a child are below its parent', async () => {
  const parent = await orchestrator();
  const child = await begin(await startChild(parent.runToken, { config: { retry } }));
  const error = { code: 'checks_failed', message: 'It failed.', retried: true };
  const body = { turn: 1, success: false, summary: '', error };
  await service.request('POST', '/harness-support/finish-task', { key: child.runToken, body });
  await sweep();
  const [again = ''] = await retriesOf(child.runId);
  expect(await read(again)).toMatchObject({ parent_run_id: parent.runId, retry_of: child.runId });
  const rerun = await service.request<{ run_id: string }>('POST', `/agent/runs/${child.runId}/rerun`, { body: {} });
  expect(await read(rerun.body.run_id)).toMatchObject({ parent_run_id: parent.runId, rerun_of: child.runId });
  await finish(parent.runToken);
});

test.each([
  [{ ...retry, max: 6 }, 'config.retry.max'],
  [{ ...retry, on: [] }, 'config.retry.on'],
  [{ ...retry, on: ['budget_exceeded'] }, 'config.retry.on[0]'],
  [{ ...retry, on: ['no_such_code'] }, 'config.retry.on[0]'],
])('a create with the retry %j gets 400', async (wrong, path) => {
  const problem = await service.problem(400, 'POST', '/agent/runs', {
    body: { prompt: 'x', config: { retry: wrong } },
  });
  expect(problem.errors?.map((each) => each.path.replace(/\.(\d)/, '[$1]'))).toEqual([path]);
});
