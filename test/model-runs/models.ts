/**
 * Tests runs with a fake model that misbehaves. Requests go from the sandbox through relay and gateway to the provider. `images.ts`
 * tests good answers over the four real protocols.
 */
import { describe, expect, test } from 'vitest';
import type { FakeModels } from '../fakes/models.ts';
import type { System } from '../support/system.ts';

export const describeModels = (system: System, models: FakeModels) =>
  describe('the system (language models)', () => {
    test('an overloaded provider gets the request again, and the run succeeds', { tags: 'long' }, async () => {
      models.misbehave({ kind: 'status', status: 429, retryAfterSeconds: 1 }, 1);
      const run = await system.untilEnded(
        await system.createRun('Please run `echo ok`.', { config: { model_id: 'openai/gpt-5.2' } }),
      );
      expect(run.state, JSON.stringify(run.status_message)).toBe('SUCCEEDED');
    });

    test('a run succeeds although a stream from the model is cut in the middle', { tags: 'long' }, async () => {
      models.misbehave({ kind: 'cut', afterPieces: 3 }, 1);
      const run = await system.untilEnded(
        await system.createRun('Please run `echo ok`.', { config: { model_id: 'anthropic/claude-opus-4-5' } }),
      );
      expect(run.state, JSON.stringify(run.status_message)).toBe('SUCCEEDED');
    });

    test('a run shows a slow answer of the model while it arrives, and can be cancelled meanwhile', async () => {
      models.misbehave({ kind: 'slow', delayMs: 400 }, 1);
      const runId = await system.createRun('Please run `echo ok`.', {
        config: { model_id: 'anthropic/claude-opus-4-5' },
      });
      await system.until(runId, (run) => run.state === 'INPROGRESS');
      expect(await system.call('POST', `/agent/runs/${runId}/cancel`)).toBe(runId);
      await system.until(runId, (run) => run.is_sandbox_running === false);
      expect((await system.run(runId)).state).toBe('CANCELLED');
    });

    test('the service rejects an unknown model before it creates a run', async () => {
      const before = await system.call<{ runs: unknown[] }>('GET', '/agent/runs?limit=500');
      await system.call('POST', '/agent/runs', { prompt: 'Go.', config: { model_id: 'anthropic/no-such-model' } }, 400);
      const after = await system.call<{ runs: unknown[] }>('GET', '/agent/runs?limit=500');
      expect(after.runs.length).toBe(before.runs.length);
    });
  });
