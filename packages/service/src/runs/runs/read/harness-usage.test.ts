import { HarnessUsage } from '@runyard/contract/runs/harness-usage';
import { expect, test } from 'vitest';
import { modelUsage } from '../../../../test/budgets.ts';
import { openTestService } from '../../../../test/service.ts';
import { recordUsage } from '../../../team/usage/record-usage.ts';

const service = await openTestService();

const spend = async (run: { runId: string; executionId: string }, modelId: string) =>
  await recordUsage(service.deps.db, modelUsage({ ...run, teamId: service.teamId, modelId }, null));

const startWith = async (type: string) => {
  const started = await service.startExecution();
  await service.deps.db.query('UPDATE runs SET harness = $2 WHERE id = $1', [started.runId, type]);
  return started;
};
const read = async (runId: string) => HarnessUsage.parse(await service.ok('GET', `/agent/runs/${runId}/harness-usage`));

test("the usage of a run with the harness claude has the sums of its requests in Anthropic's counters, in total and for each model", async () => {
  const run = await startWith('claude');
  expect(await read(run.runId)).toMatchObject({ available: false, run_id: run.runId });
  await spend(run, 'anthropic/b');
  await spend(run, 'anthropic/a');
  await spend(run, 'anthropic/b');
  const { available, usage, age_seconds } = await read(run.runId);
  const one = {
    input_tokens: 100,
    output_tokens: 30,
    cache_read_input_tokens: 40,
    cache_creation_input_tokens: 7,
  };
  const times = (n: number) => Object.fromEntries(Object.entries(one).map(([name, count]) => [name, n * count]));
  expect([available, age_seconds]).toEqual([true, expect.any(Number)]);
  expect(usage).toMatchObject({ harness: 'CLAUDE_CODE', executionId: 1, captureSequence: 3 });
  expect(usage?.snapshot).toEqual({
    coverage: { tokenStatus: 'known', toolStatus: 'unavailable' },
    payload: {
      usage: times(3),
      attribution: [
        { model: 'anthropic/a', usage: one },
        { model: 'anthropic/b', usage: times(2) },
      ],
    },
  });
});

test('the usage of a run with the harness codex counts cached tokens in input_tokens too, as OpenAI does', async () => {
  const run = await startWith('codex');
  await spend(run, 'openai/a');
  expect((await read(run.runId)).usage?.snapshot.payload.usage).toEqual({
    input_tokens: 147,
    cached_input_tokens: 40,
    cache_write_input_tokens: 7,
    output_tokens: 30,
    total_tokens: 177,
  });
});

test('a run of another harness has no counters, and a run of another team is not found', async () => {
  const run = await startWith('oz');
  await spend(run, 'anthropic/a');
  expect(await read(run.runId)).not.toHaveProperty('usage');
  await service.problem(404, 'GET', `/agent/runs/${run.runId}/harness-usage`, { key: service.otherKey });
  await service.problem(404, 'GET', '/agent/runs/none/harness-usage');
});
