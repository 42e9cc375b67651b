import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startFakeModels } from '../../../../../../test/fakes/models.ts';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { answerAtFixedCost, answerUsd, askModel, openRequests, opus, stateOf } from '../../../../test/budgets.ts';
import { startTestProcess, type TestProcess } from '../../../../test/process.ts';
import { openTestService } from '../../../../test/service.ts';

const fake = closeAtEnd(await startFakeModels());
const service = await openTestService({ env: fake.env });
let others: TestProcess[] = [];
beforeAll(async () => {
  others = [await startTestProcess(service.deps), await startTestProcess(service.deps)];
});
afterAll(async () => {
  for (const other of others) await other.close();
});
beforeEach(async () => {
  answerAtFixedCost(fake);
  await service.deps.db.query('DELETE FROM team_budgets; DELETE FROM team_spend');
  await acceptedCreate();
});

const thisMonth = () => new Date().toISOString().slice(0, 7);
const setBudget = async (body: object) => (await service.request('PATCH', '/budget', { body })).body;
const spent = async () => (await service.request<{ spent_usd: number }>('GET', '/budget')).body.spent_usd;
const create = { body: { prompt: 'Do it' } };
/** Wait, because the service may use a state of the team that is up to a second old. */
const refusedCreate = async () => {
  await expect.poll(async () => (await service.request('POST', '/agent/runs', create)).status).toBe(403);
  return await service.problem(403, 'POST', '/agent/runs', create);
};
const acceptedCreate = () =>
  expect.poll(async () => (await service.request('POST', '/agent/runs', create)).status).toBe(200);

let monthAtBegin = '';
beforeEach(() => {
  monthAtBegin = thisMonth();
});
// Each month, the sum that a team has spent begins at 0.
const inNewMonth = { retry: { count: 1, condition: () => thisMonth() !== monthAtBegin } };

describe('the budget of a team', inNewMonth, () => {
  it('can be read, and each member of it can be changed separately', async () => {
    const month = thisMonth();
    expect((await service.request('GET', '/budget')).body).toEqual({ month, spent_usd: 0 });
    expect(await setBudget({ monthly_limit_usd: 12.5 })).toMatchObject({ month, monthly_limit_usd: 12.5 });
    expect(await setBudget({ credits: 300 })).toMatchObject({ monthly_limit_usd: 12.5, credits: 300 });
    const changed = await setBudget({ monthly_limit_usd: null });
    expect(changed).toMatchObject({ credits: 300 });
    expect(changed).not.toHaveProperty('monthly_limit_usd');
    const other = await service.request('GET', '/budget', { key: service.otherKey });
    expect(other.body).toEqual({ month, spent_usd: 0 });
  });

  it('is refused with 400 if it is below 0', async () => {
    const problem = await service.problem(400, 'PATCH', '/budget', { body: { credits: -1 } });
    expect(problem.errors?.[0]?.path).toBe('credits');
  });

  it('ends runs that send a request to their model after the monthly limit is reached, and refuses new runs with budget_exceeded', async () => {
    await setBudget({ monthly_limit_usd: answerUsd * 1.5 });
    const [first, second] = [
      await service.startExecution({ config: { model_id: opus } }),
      await service.startExecution({ config: { model_id: opus } }),
    ];
    for (const { runToken } of [first, second]) expect((await askModel(service.baseUrl, runToken)).status).toBe(200);
    await expect.poll(spent).toBeCloseTo(answerUsd * 2, 9);
    expect(await askModel(service.baseUrl, first.runToken)).toMatchObject({ status: 403, code: 'budget_exceeded' });
    expect(await stateOf(service, first.runId)).toMatchObject({ state: 'FAILED', code: 'budget_exceeded' });
    expect((await refusedCreate()).error_code).toBe('budget_exceeded');
    await setBudget({ monthly_limit_usd: null });
    await acceptedCreate();
  });

  it('allows requests until the credits are used up, and then refuses with insufficient_credits', async () => {
    await setBudget({ credits: 0.1 });
    const { runId, runToken } = await service.startExecution({ config: { model_id: opus } });
    expect((await askModel(service.baseUrl, runToken)).status).toBe(200);
    await expect
      .poll(async () => (await service.request<{ credits: number }>('GET', '/budget')).body.credits)
      .toBeCloseTo(0.1 - answerUsd * 100, 9);
    expect(await askModel(service.baseUrl, runToken)).toMatchObject({ status: 403, code: 'insufficient_credits' });
    expect(await stateOf(service, runId)).toMatchObject({ state: 'FAILED', code: 'insufficient_credits' });
    expect((await refusedCreate()).error_code).toBe('insufficient_credits');
  });

  it('refuses requests to a model whose price is unknown', async () => {
    await setBudget({ monthly_limit_usd: 5 });
    const body = { prompt: 'Do it', config: { model_id: 'local/fake-local' } };
    await expect.poll(async () => (await service.request('POST', '/agent/runs', { body })).status).toBe(403);
    expect((await service.problem(403, 'POST', '/agent/runs', { body })).detail).toContain(
      'RUNYARD_UNKNOWN_MODEL_PRICE',
    );
  });

  it('is exceeded by at most one model answer of each live run, even with three service processes', async () => {
    const runs = 4;
    const limit = answerUsd * 10.5;
    await setBudget({ monthly_limit_usd: limit });
    const tokens: string[] = [];
    for (let i = 0; i < runs; i++) tokens.push((await service.startExecution({ config: { model_id: opus } })).runToken);
    const urls = [service.baseUrl, ...others.map(({ baseUrl }) => baseUrl)];
    const flood = async (url: string, runToken: string) => {
      const statuses: number[] = [];
      for (;;) {
        const { status } = await askModel(url, runToken);
        statuses.push(status);
        if (status !== 200) return statuses;
      }
    };
    // Each run sends two requests through each process at the same time.
    const asked = urls.flatMap((url) => tokens.flatMap((token) => [flood(url, token), flood(url, token)]));
    const statuses = (await Promise.all(asked)).flat();
    await expect.poll(() => openRequests(service)).toBe(0);
    const total = await spent();
    expect(statuses.filter((status) => status === 200)).toHaveLength(Math.round(total / answerUsd));
    expect(total).toBeGreaterThan(limit);
    expect(total).toBeLessThanOrEqual(limit + runs * answerUsd);
  });
});
