import { describe, expect, it } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService({
  env: { RUNYARD_KEY_REQUESTS_PER_MINUTE: '3', RUNYARD_TEAM_REQUESTS_PER_MINUTE: '8' },
});
const models = (key: string) => service.request('GET', '/agent/models', { key });

describe('the rate limits', () => {
  it('answer 429 with Retry-After above the limit of the key, before the body is read', async () => {
    const teamId = service.otherTeamId;
    const key = await service.newKey({ teamId });
    const answers = [await models(key), await models(key), await models(key)];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    const policy = '"key";q=3;w=60, "team";q=8;w=60';
    expect(answers.map(({ headers }) => headers.get('ratelimit-policy'))).toEqual([policy, policy, policy]);
    // The number of seconds until all requests are available again decreases while the test runs.
    expect(answers[0]?.headers.get('ratelimit')).toMatch(/^"key";r=2;t=(\d|1\d|20), "team";r=7;t=[1-8]$/);
    const refused = await service.request('POST', '/agent/runs', {
      key,
      raw: '{"not json',
      headers: { 'content-type': 'application/json' },
    });
    expect(refused.status).toBe(429);
    expect(refused.headers.get('ratelimit')).toMatch(/^"key";r=0;t=(\d|1\d|20), "team";r=[567];t=(\d|1\d|2[0-3])$/);
    const retryAfter = Number(refused.headers.get('retry-after'));
    expect(retryAfter).toBeGreaterThan(0);
    expect(retryAfter).toBeLessThanOrEqual(20);
    expect((await service.problem(429, 'GET', '/agent/models', { key })).error_code).toBe('resource_unavailable');
  });

  it('do not let one key use the requests of other keys, and limit all keys of a team together', async () => {
    const keys = [await service.newKey(), await service.newKey(), await service.newKey()];
    const statuses: number[] = [];
    const startedAt = performance.now();
    for (const key of keys) for (let i = 0; i < 5; i++) statuses.push((await models(key)).status);
    const admitted = (from: number) => statuses.slice(from, from + 5).filter((status) => status === 200).length;
    // A key gets one more request every 20 seconds, a team every 7.5 seconds.
    const more = Math.ceil((performance.now() - startedAt) / 7_500) - 1;
    for (const [from, least] of [
      [0, 3],
      [5, 3],
      [10, 2],
    ] as const) {
      expect(admitted(from)).toBeGreaterThanOrEqual(least);
      expect(admitted(from)).toBeLessThanOrEqual(least + more);
    }
    expect((await service.problem(429, 'GET', '/agent/models', { key: keys[2] ?? '' })).detail).toContain('team');
  });

  it('do not count requests without a valid key', async () => {
    const answer = await service.request('GET', '/agent/models', { key: null });
    expect([answer.status, answer.headers.get('ratelimit')]).toEqual([401, null]);
  });
});

it('settings of 0 mean no rate limit', async () => {
  const unlimited = await openTestService({
    env: { RUNYARD_KEY_REQUESTS_PER_MINUTE: '0', RUNYARD_TEAM_REQUESTS_PER_MINUTE: '0' },
  });
  const answer = await unlimited.request('GET', '/agent/models');
  expect([answer.status, answer.headers.get('ratelimit-policy')]).toEqual([200, null]);
});
