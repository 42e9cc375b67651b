/** Test support: a run with a check in a fresh sandbox. */
import type { TestService } from './service.ts';

/** Starts a run whose agent has begun, has stored the changes of its turn, and may start its check `tests`. Returns its token. */
export async function runWithFreshCheck(service: TestService): Promise<string> {
  await service.deps.db.query(
    `INSERT INTO worker_connections (id, service_instance_id, worker_id, slots, sandbox) VALUES (gen_random_uuid(), gen_random_uuid(), 'runyard-closed', 1, $1)`,
    [{ backend: 'bubblewrap', features: ['host-rules', 'no-network'], missing: [] }],
  );
  const github_repos = [{ owner: 'acme', repo: 'sum' }];
  const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
    body: { config: { name: 'E', github_repos } },
  });
  const checks = [{ name: 'tests', command: 'true', fresh: true }];
  const { runToken: key } = await service.startExecution({ config: { environment_id: environment.body.uid, checks } });
  const started = {
    seq: 1,
    occurred_at: '2026-01-02T03:04:05.000Z',
    type: 'agent_started',
    harness: 'oz',
    model_id: 'm',
  };
  const events = [{ ...started, base_commits: [{ path: 'sum', commit: 'a'.repeat(40) }] }];
  await service.request('POST', '/harness-support/events', { key, body: { events } });
  await service.request('POST', '/harness-support/upload-snapshot', { key, body: { turn: 1, files: [] } });
  return key;
}

/** Starts the check of such a run. Returns the token of the run and the id of the run of the check. */
export async function startedFreshCheck(service: TestService) {
  const key = await runWithFreshCheck(service);
  const body = { turn: 1, attempt: 1, name: 'tests' };
  const path = '/harness-support/fresh-checks';
  const { check_run_id } = (await service.request<{ check_run_id: string }>('POST', path, { key, body })).body;
  return { RUN_TOKEN: key, CHILD_RUN_ID: check_run_id };
}
