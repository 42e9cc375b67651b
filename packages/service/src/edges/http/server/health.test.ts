import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../../../test/service.ts';

describe('while the disk of the data folder is full', () => {
  const reason = 'the disk of /data is full (0 MB free)';
  const run = { prompt: 'Do it' };
  let full: TestService;
  beforeAll(async () => {
    full = await startTestService();
    await full.newRun();
    Object.assign(full.deps, { freeSpace: { problem: () => reason } });
  });
  afterAll(() => full.close());

  test('refuses requests that store data, after checking the key', async () => {
    const problem = await full.problem(503, 'POST', '/agent/runs', { body: run });
    expect(problem).toMatchObject({ error_code: 'resource_unavailable', retryable: true });
    expect(problem.detail).toContain(reason);
    await full.problem(401, 'POST', '/agent/runs', { body: run, key: 'ryk_unknown' });
  });

  test('reads, cancels and deletes', async () => {
    const { body } = await full.request<{ runs: { run_id: string }[] }>('GET', '/agent/runs');
    const runId = body.runs[0]?.run_id;
    expect((await full.request('POST', `/agent/runs/${runId}/cancel`)).status).toBe(200);
    expect((await full.request('DELETE', `/agent/runs/${runId}`)).status).toBe(200);
  });

  test('/readyz reports that the service is ready and which part does not work', async () => {
    const answer = await full.request('GET', `${full.baseUrl}/readyz`);
    expect([answer.status, answer.body]).toEqual([200, { status: 'ready', degraded: reason }]);
  });

  test('/readyz says why the database of the service does not run', async () => {
    Object.assign(full.deps, { databaseProblem: () => 'the embedded PostgreSQL does not start' });
    const answer = await full.request('GET', `${full.baseUrl}/readyz`);
    expect([answer.status, answer.body]).toEqual([
      503,
      { status: 'not_ready', reason: 'the embedded PostgreSQL does not start' },
    ]);
    Object.assign(full.deps, { databaseProblem: () => null });
  });
});
