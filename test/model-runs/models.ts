/** Runs with a language model: sandbox → relay → gateway → provider, over the four real streaming protocols. */
import { describe, expect, test } from 'vitest';
import type { FakeModels } from '../fakes/models.ts';
import { fakeModelKeys } from '../fakes/models.ts';
import type { System } from '../support/system.ts';

export const describeModels = (system: System, models: FakeModels) =>
  describe('language models', () => {
    const ids = ['anthropic/claude-opus-4-5', 'openai/gpt-5.2', 'google/gemini-2.5-pro', 'local/fake-local'];
    const conversationOf = async (runId: string) =>
      JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`));

    test.each(ids)('%s calls a tool in the sandbox, answers, and its tokens are counted', async (model_id) => {
      const runId = await system.createRun('Please run `echo from $((40 + 2))`.', { config: { model_id } });
      const run = await system.untilEnded(runId);
      expect(run, JSON.stringify(run.status_message)).toMatchObject({ state: 'SUCCEEDED' });
      const conversation = await conversationOf(runId);
      expect(conversation).toContain('from 42');
      expect(conversation).toContain('The command gave');
      expect(run.request_usage?.total_tokens).toBe(100 + 20 + 140 + 10);
      if (!model_id.startsWith('local/')) expect(run.request_usage?.inference_cost_usd).toBeGreaterThan(0);
      else expect(run.request_usage?.inference_cost_usd).toBeUndefined();
    });

    test('shows no provider key in an answer of the service or in the sandbox', async () => {
      const runId = await system.createRun('Please run `env; cat /proc/*/environ /proc/*/cmdline`.', {
        config: { model_id: ids[0] },
      });
      await system.untilEnded(runId);
      const conversation = await conversationOf(runId);
      for (const key of Object.values(fakeModelKeys)) expect(conversation).not.toContain(key);
      expect(await system.logs()).not.toContain(fakeModelKeys.anthropic);
    });

    test('repeats a request to an overloaded provider, and the run succeeds', async () => {
      models.misbehave({ kind: 'status', status: 429, retryAfterSeconds: 1 }, 1);
      const run = await system.untilEnded(
        await system.createRun('Please run `echo ok`.', { config: { model_id: ids[1] } }),
        60_000,
      );
      expect(run.state, JSON.stringify(run.status_message)).toBe('SUCCEEDED');
    }, 90_000);

    test('finishes a run if the stream from the model is cut in the middle', async () => {
      models.misbehave({ kind: 'cut', afterPieces: 3 }, 1);
      const run = await system.untilEnded(
        await system.createRun('Please run `echo ok`.', { config: { model_id: ids[0] } }),
        90_000,
      );
      expect(run.state, JSON.stringify(run.status_message)).toBe('SUCCEEDED');
    }, 120_000);

    test('shows a slow stream while it arrives and lets it be cancelled', async () => {
      models.misbehave({ kind: 'slow', delayMs: 400 }, 1);
      const runId = await system.createRun('Please run `echo ok`.', { config: { model_id: ids[0] } });
      await system.until(runId, (run) => run.state === 'INPROGRESS');
      expect(await system.call('POST', `/agent/runs/${runId}/cancel`)).toBe(runId);
      await system.until(runId, (run) => run.is_sandbox_running === false, 10_000);
      expect((await system.run(runId)).state).toBe('CANCELLED');
    });

    test('rejects an unknown model before it creates a run', async () => {
      const before = await system.call<{ runs: unknown[] }>('GET', '/agent/runs?limit=500');
      await system.call('POST', '/agent/runs', { prompt: 'Go.', config: { model_id: 'anthropic/no-such-model' } }, 400);
      const after = await system.call<{ runs: unknown[] }>('GET', '/agent/runs?limit=500');
      expect(after.runs.length).toBe(before.runs.length);
    });
  });
