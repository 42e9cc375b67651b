import { once } from 'node:events';
import type { ChildRun } from '@runyard/contract/runs/child-runs';
import { describe, expect, test } from 'vitest';
import { children, nesting, testChildRuns } from '../../../../test/child-runs.ts';
import { openTestService, startTestService } from '../../../../test/service.ts';

const service = await openTestService();

const { started, orchestrator, startChild, begin, run } = testChildRuns(service);

describe('POST child-runs/{id}/cancel', () => {
  test('cancels the child and its descendants, and leaves ended runs unchanged', async () => {
    const { runToken: key } = await orchestrator({ config: nesting });
    const child = await begin(await startChild(key, { mode: 'orchestrate' }));
    const grandchild = await startChild(child.runToken);
    const answer = await service.request<ChildRun>('POST', `${children}/${child.runId}/cancel`, { key });
    expect([answer.status, answer.body.state]).toEqual([200, 'CANCELLED']);
    expect(await run(grandchild)).toMatchObject({ state: 'CANCELLED' });
    expect((await service.ok<ChildRun>('POST', `${children}/${child.runId}/cancel`, { key })).state).toBe('CANCELLED');
  });

  test('waits until a PENDING child is claimed', async () => {
    const { runToken: key } = await orchestrator();
    const child = await startChild(key);
    const pending = await service.claimRun(child, 'PENDING');
    const answer = service.request<ChildRun>('POST', `${children}/${child}/cancel`, { key });
    await started(pending);
    expect((await answer).body.state).toBe('CANCELLED');
  });

  test('answers 409 at once when the service stops while waiting for a PENDING child', async () => {
    const stopping = await startTestService();
    const parent = await stopping.startExecution({ mode: 'orchestrate' });
    const child = await stopping.request<{ run_id: string }>('POST', children, {
      key: parent.runToken,
      body: { prompt: 'a' },
    });
    await stopping.claimRun(child.body.run_id, 'PENDING');
    const arrived = once(stopping.app.server, 'request');
    const answer = stopping.problem(409, 'POST', `${children}/${child.body.run_id}/cancel`, { key: parent.runToken });
    await arrived;
    const startedAt = performance.now();
    const closed = stopping.close();
    expect(await answer).toMatchObject({ error_code: 'conflict', retryable: true });
    expect(performance.now() - startedAt).toBeLessThan(15_000);
    await closed;
  });

  test('cancels a self-hosted child, which people cannot cancel', async () => {
    const { runToken: key } = await orchestrator({ config: { worker_host: 'mine' } });
    const child = await startChild(key);
    await service.problem(422, 'POST', `/agent/runs/${child}/cancel`);
    expect((await service.ok<ChildRun>('POST', `${children}/${child}/cancel`, { key })).state).toBe('CANCELLED');
  });
});
