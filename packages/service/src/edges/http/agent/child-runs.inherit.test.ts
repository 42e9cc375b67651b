import { describe, expect, test } from 'vitest';
import { children, testChildRuns } from '../../../../test/child-runs.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { started, begin, orchestrator, startChild, run } = testChildRuns(service);

const newEnvironment = async (name: string) =>
  (await service.request<{ uid: string }>('POST', '/agent/environments', { body: { config: { name } } })).body.uid;
const [own, other] = [await newEnvironment('own'), await newEnvironment('other')];

const configOf = async (runId: string) => (await run(runId)).agent_config as Record<string, unknown>;
const ask = (key: string, body: object) => ({ key, body: { prompt: 'A part.', ...body } });

describe('POST child-runs for a parent without child_runs.overrides', () => {
  test.each([
    ['config.worker_host', { config: { worker_host: 'laptop' } }],
    ['config.worker_host', { config: { worker_host: '' } }],
    ['config.environment_id', { config: { environment_id: other } }],
    ['config.runner_config', { config: { runner_config: { docker_image: 'other' } } }],
    ['config.child_runs', { config: { child_runs: { enabled: true } } }],
    ['config.child_runs', { config: { child_runs: { enabled: true, max_live: 32, overrides: ['worker_host'] } } }],
    ['mode', { mode: 'orchestrate' }],
  ])('answers 403 for a child with its own %s (%j), and creates nothing', async (member, body) => {
    const parent = await orchestrator({ config: { worker_host: 'rack', environment_id: own } });
    const problem = await service.problem(403, 'POST', children, ask(parent.runToken, body));
    expect(problem).toMatchObject({ error_code: 'not_authorized', detail: expect.stringContaining(member) });
    expect(problem.detail).toContain('overrides');
    const { body: list } = await service.request('GET', children, { key: parent.runToken });
    expect(list).toEqual({ child_runs: [] });
  });

  test('refuses to start a child of a hosted run on a self-hosted worker or in another environment', async () => {
    const { runToken } = await orchestrator();
    await service.problem(403, 'POST', children, ask(runToken, { config: { worker_host: 'laptop' } }));
    await service.problem(403, 'POST', children, ask(runToken, { config: { environment_id: other } }));
  });

  test("lets a child inherit or name the parent's worker and environment, and lets it disable child runs of its own", async () => {
    const runner_config = { docker_image: 'node:24' };
    const config = { worker_host: 'rack', environment_id: own, runner_config };
    const parentId = await service.newRun({ mode: 'orchestrate', config });
    // The worker of this test runs no images.
    await service.deps.db.query('UPDATE executions SET image = NULL WHERE run_id = $1', [parentId]);
    const parent = await begin(parentId);
    const repeated = { worker_host: 'rack', environment_id: own, child_runs: { enabled: false } };
    for (const body of [{}, { config: repeated }]) {
      expect(await configOf(await startChild(parent.runToken, body))).toMatchObject(config);
    }
    const hosted = await orchestrator();
    for (const worker_host of ['', 'warp', 'runyard'])
      expect(await startChild(hosted.runToken, { config: { worker_host } })).toEqual(expect.any(String));
  });
});

describe('POST child-runs for a parent with child_runs.overrides', () => {
  const withOverrides = (overrides: string[], more: object = {}) =>
    orchestrator({
      config: { worker_host: 'rack', environment_id: own, child_runs: { enabled: true, overrides, ...more } },
    });

  test('lets a child override the named members and no others', async () => {
    const { runToken } = await withOverrides(['worker_host']);
    expect(await configOf(await startChild(runToken, { config: { worker_host: 'laptop' } }))).toMatchObject({
      worker_host: 'laptop',
      environment_id: own,
    });
    await service.problem(403, 'POST', children, ask(runToken, { config: { environment_id: other } }));
    const second = await withOverrides(['environment_id']);
    expect(await configOf(await startChild(second.runToken, { config: { environment_id: other } }))).toMatchObject({
      worker_host: 'rack',
      environment_id: other,
    });
  });

  test("gives a child at most the parent's limit of live children and the parent's permission to override members", async () => {
    const parent = await withOverrides(['child_runs'], { max_live: 3 });
    const asked = { enabled: true, max_live: 32, overrides: ['worker_host', 'environment_id', 'child_runs'] };
    const { child_runs: wide } = await configOf(await startChild(parent.runToken, { config: { child_runs: asked } }));
    expect(wide).toEqual({ enabled: true, max_live: 3, overrides: ['child_runs'] });
    const narrow = { enabled: true, max_live: 1, overrides: [] };
    const { child_runs: kept } = await configOf(await startChild(parent.runToken, { config: { child_runs: narrow } }));
    expect(kept).toEqual(narrow);
  });

  test("gives children and grandchildren in the mode orchestrate the parent's limit of live children and the parent's permission to override members", async () => {
    const parent = await withOverrides(['child_runs'], { max_live: 3 });
    const child = await startChild(parent.runToken, { mode: 'orchestrate' });
    expect(await configOf(child)).toMatchObject({
      child_runs: { enabled: true, max_live: 3, overrides: ['child_runs'] },
    });
    const { runToken } = await started(await service.claimRun(child));
    const grandchild = await startChild(runToken, { mode: 'orchestrate' });
    expect(await configOf(grandchild)).toMatchObject({ child_runs: { max_live: 3 }, worker_host: 'rack' });
    await service.problem(403, 'POST', children, ask(runToken, { config: { worker_host: 'laptop' } }));
  });

  test('refuses an unknown member with 400 when the run is created', async () => {
    const config = { child_runs: { enabled: true, overrides: ['approval_policy'] } };
    await service.problem(400, 'POST', '/agent/runs', { body: { prompt: 'a', config } });
  });
});
