/** A program of the sandbox has taken the run token, and wants a check to pass, or to keep the workers busy. */
import { expect, test } from 'vitest';
import { assignNext } from '../../../../test/assign-next.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const occurred_at = '2026-01-02T03:04:05.000Z';
const closed = { backend: 'bubblewrap', features: ['host-rules', 'no-network'], missing: [] };
const db = service.deps.db;
await db.query(
  `INSERT INTO worker_connections (id, service_instance_id, worker_id, slots, sandbox) VALUES (gen_random_uuid(), gen_random_uuid(), 'runyard-closed', 1, $1)`,
  [closed],
);
const config = { name: 'E', github_repos: [{ owner: 'acme', repo: 'sum' }] };
const environment = await service.request<{ uid: string }>('POST', '/agent/environments', { body: { config } });
type Started = Awaited<ReturnType<typeof service.startExecution>>;

const post = <T>({ runToken: key }: Pick<Started, 'runToken'>, path: string, body: object) =>
  service.request<T>('POST', `/harness-support/${path}`, { key, body });
const begin = (run: Pick<Started, 'runToken'>, commit: string) => {
  const started = { seq: 1, occurred_at, type: 'agent_started', harness: 'oz', model_id: 'runbook' };
  const turn = { seq: 2, occurred_at, type: 'turn_started', step_id: 's', prompt: 'Go.' };
  return post(run, 'events', {
    events: [{ ...started, base_commits: [{ path: 'sum', commit: commit.repeat(40) }] }, turn],
  });
};
const store = (run: Pick<Started, 'runToken'>, turn: number) => post(run, 'upload-snapshot', { turn, files: [] });
const ask = (run: Pick<Started, 'runToken'>, turn: number, attempt = 1) =>
  post<{ check_run_id: string }>(run, 'fresh-checks', { turn, attempt, name: 'tests' });
const passes = async (checkRunId: string) => {
  const checking = await service.claimRun(checkRunId);
  await begin(checking, 'a');
  await post(checking, 'finish-task', {
    turn: 1,
    summary: '',
    success: true,
    checks: [{ name: 'tests', passed: true }],
  });
};
const claim = { summary: '', success: true, checks: [{ name: 'tests', passed: true }] };
const stateOf = async ({ runId }: Pick<Started, 'runId'>) =>
  (await service.request<{ state: string }>('GET', `/agent/runs/${runId}`)).body.state;

async function startRun(): Promise<Started> {
  const checks = [{ name: 'tests', command: 'sh run-tests', fresh: true, trusted_paths: ['test'] }];
  const more = { environment_id: environment.body.uid, checks, check_attempts: 1 };
  const run = await service.startExecution({ config: more });
  await begin(run, 'a');
  await store(run, 1);
  return run;
}

/** Ends the sandbox of a run whose files are kept, and returns the execution that a message begins in these files. */
async function goOn({ runId, executionId, runToken }: Started) {
  const octets = { 'content-type': 'application/octet-stream' };
  const archive = { key: runToken, raw: new Uint8Array([1]), headers: octets };
  await service.request('PUT', '/harness-support/workspace?turn=1', archive);
  await post({ runToken }, 'finish-task', { ...claim, turn: 1 });
  const [row] = await db.query<{ connection_id: string; pool: string }>(
    `UPDATE executions SET phase = 'ended' WHERE id = $1 RETURNING connection_id, pool`,
    [executionId],
  );
  await service.request('POST', `/agent/runs/${runId}/followups`, { body: { message: 'More.' } });
  const slot = { connectionId: row?.connection_id ?? '', pool: row?.pool ?? '', teamId: null };
  const worker = { workerId: 'runyard-test', workerInstance: 'one' };
  const next = await assignNext(service.deps.executionDeps, { ...slot, ...worker });
  if (typeof next === 'string') throw new Error(next);
  return next;
}

test('a program of an earlier turn cannot choose the base commits of a check in restored files', async () => {
  const first = await startRun();
  await passes((await ask(first, 1)).body.check_run_id);
  const next = await goOn(first);
  await begin(next, 'e');
  await store(next, 1);
  const { check_run_id: id } = (await ask(next, 1)).body;
  const [row] = await db.query('SELECT base_commits FROM fresh_checks WHERE run_id = $1', [id]);
  expect(row).toEqual({ base_commits: [{ path: 'sum', commit: 'a'.repeat(40) }] });
});

test('a run tries a check at most check_attempts times, with any turn numbers and any number of requests at once', async () => {
  const run = await startRun();
  const statuses = [];
  for (const turn of [1, 2, 3, 4]) {
    await store(run, turn);
    statuses.push((await ask(run, turn)).status);
  }
  expect(statuses).toEqual([200, 200, 409, 409]);
  const other = await startRun();
  const answers = await Promise.all([1, 2, 3, 4, 5, 6].map((attempt) => ask(other, 1, attempt)));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(2);
});

test('a check has not passed if the stored changes were replaced after it ran', async () => {
  const run = await startRun();
  await passes((await ask(run, 1)).body.check_run_id);
  await store(run, 1);
  await post(run, 'finish-task', { ...claim, turn: 1 });
  expect(await stateOf(run)).toBe('FAILED');
});
