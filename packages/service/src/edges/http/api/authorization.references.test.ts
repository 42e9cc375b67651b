/** Tests ids of another team in bodies and in filters. */
import { randomUUIDv7 } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const key = service.otherKey;
const runId = await service.newRun({ metadata: { theirs: 'yes' }, config: { name: 'theirs' } }, key);
const run = await service.request<{ conversation_id: string }>('GET', `/agent/runs/${runId}`, { key });
const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
  key,
  body: { config: { name: 'theirs' } },
});
const theirs = { runId, conversationId: run.body.conversation_id, environmentId: environment.body.uid };

describe.each([
  ['POST /agent/runs', () => '/agent/runs', { prompt: 'a' }],
  ['POST /agent/run', () => '/agent/run', { prompt: 'a' }],
])('%s', (_name, path, body) => {
  test.each([
    ['parent_run_id', () => theirs.runId],
    ['conversation_id', () => theirs.conversationId],
  ] as const)('answers 400 for the %s of another team, as for one that does not exist', async (name, id) => {
    const refused = async (value: string) => {
      const { errors } = await service.problem(400, 'POST', path(), { body: { ...body, [name]: value } });
      return errors;
    };
    const errors = await refused(id());
    expect(errors?.map((error) => error.path)).toEqual([name]);
    expect(await refused(randomUUIDv7())).toEqual(errors);
    await service.ok('POST', path(), { key: service.otherKey, body: { ...body, [name]: id() } });
  });
});

test("a rerun and an agent's child run in the environment of another team get 403", async () => {
  const { runId, runToken } = await service.startExecution({ mode: 'orchestrate' });
  const config = { environment_id: theirs.environmentId };
  await service.problem(403, 'POST', `/agent/runs/${runId}/rerun`, { body: { config } });
  await service.problem(403, 'POST', '/harness-support/child-runs', { key: runToken, body: { prompt: 'a', config } });
});

describe('GET /agent/runs', () => {
  test('answers 400 for the ancestor_run_id of another team, as for an ancestor_run_id that does not exist', async () => {
    const refused = async (id: string) =>
      (await service.problem(400, 'GET', `/agent/runs?ancestor_run_id=${id}`)).errors;
    expect(await refused(theirs.runId)).toEqual(await refused(randomUUIDv7()));
  });

  test.each(['metadata[theirs]=yes', 'name=theirs', 'sort_by=agent', 'state=QUEUED'])(
    'shows no run of another team with %s',
    async (query) => {
      const list = (key: string) =>
        service.request<{ runs: { run_id: string }[] }>('GET', `/agent/runs?${query}&limit=500`, { key });
      const runIds = (await list(service.key)).body.runs.map((run) => run.run_id);
      expect(runIds).not.toContain(theirs.runId);
      expect((await list(service.otherKey)).body.runs.map((run) => run.run_id)).toContain(theirs.runId);
    },
  );
});
