import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

describe('POST /agent/runs/{id}/cancel', () => {
  test('answers 200 with the id as a JSON string', async () => {
    const id = await service.newRun();
    const answer = await service.request('POST', `/agent/runs/${id}/cancel`);
    expect([answer.status, answer.text]).toEqual([200, JSON.stringify(id)]);
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
    expect((await service.request('GET', `/agent/runs/${id}`)).body).toMatchObject({ state: 'CANCELLED' });
  });

  test('answers 400 for a run that has ended', async () => {
    const id = await service.newRun();
    await service.request('POST', `/agent/runs/${id}/cancel`);
    expect((await service.problem(400, 'POST', `/agent/runs/${id}/cancel`)).error_code).toBe('invalid_request');
  });

  test('answers 409, retryable, for a run that is PENDING', async () => {
    const { runId } = await service.startExecution({}, 'PENDING');
    const problem = await service.problem(409, 'POST', `/agent/runs/${runId}/cancel`);
    expect(problem).toMatchObject({ error_code: 'conflict', retryable: true });
  });

  test('answers 422 for a self-hosted run', async () => {
    const id = await service.newRun({ config: { worker_host: 'my-box' } });
    expect((await service.problem(422, 'POST', `/agent/runs/${id}/cancel`)).error_code).toBe('operation_not_supported');
  });
});
