import { describe, expect, test } from 'vitest';
import type { Outage } from '../../../team/models/choices.ts';
import { openModelHealth } from './model-health.ts';

function health({ probe = false, hasOneTeam = false } = {}) {
  const begun: string[] = [];
  const ended: Outage[] = [];
  const clock = { now: 0 };
  const opened = openModelHealth({
    begin: async (provider, reason) => begun.push(`${provider}: ${reason}`) > 0,
    end: async (outage) => ended.push(outage) > 0,
    probe: async () => probe,
    hasOneTeam: async () => hasOneTeam,
    log: { info: () => {}, warn: () => {} },
    now: () => clock.now,
  });
  /** Reports failed requests of these runs in turn. Each entry of `runs` is a team id, a space and a run id. */
  const fail = (times: number, runs = ['x a', 'y b']) => {
    for (let each = 0; each < times; each++) {
      const [teamId = '', runId = ''] = (runs[each % runs.length] ?? '').split(' ');
      opened.failed('anthropic', { runId, teamId }, 'the provider answered 529');
    }
  };
  return { ...opened, begun, ended, clock, fail };
}

describe('an outage', () => {
  test('begins after five failures in a row, not after four, and not if one request succeeded in between', async () => {
    const { fail, worked, settled, begun } = health();
    fail(4);
    worked('anthropic', undefined);
    fail(4);
    await settled();
    expect(begun).toEqual([]);
    fail(1);
    await settled();
    expect(begun).toEqual(['anthropic: the provider answered 529']);
  });

  test('does not begin with failures that are far apart', async () => {
    const { fail, clock, settled, begun } = health();
    for (let each = 0; each < 10; each++) {
      fail(1, [`${each} ${each}`]);
      clock.now += 6 * 60_000;
    }
    await settled();
    expect(begun).toEqual([]);
  });

  test.each([
    ['one run', 0, ['x a'], { hasOneTeam: true }],
    ['runs of one team', 0, ['x a', 'x b', 'x c'], {}],
    ['runs of the only team', 1, ['x a', 'x b'], { hasOneTeam: true }],
    ['runs of two teams', 1, ['x a', 'y b'], {}],
  ])('of a provider that still answers the service: failures of %s begin %i', async (_, count, runs, more) => {
    const { fail, settled, begun } = health({ probe: true, ...more });
    fail(20, runs);
    await settled();
    expect(begun).toHaveLength(count);
  });

  test("begins after failures of a single run if the provider does not answer the service's own probe either", async () => {
    const { fail, settled, begun } = health({ probe: false });
    fail(5, ['x a']);
    await settled();
    expect(begun).toHaveLength(1);
  });

  test('of an unstable provider is written to the database at most every 10 s, however many requests fail', async () => {
    const { fail, worked, settled, begun, clock } = health();
    for (let second = 0; second < 30; second++) {
      fail(50);
      worked('anthropic', undefined);
      clock.now += 1_000;
    }
    await settled();
    expect(begun).toHaveLength(3);
  });

  test('ends with a successful request that was sent after the outage was known', async () => {
    const { worked, settled, ended } = health();
    const outage = { provider: 'anthropic', beganAt: 'then', probeInSeconds: 1 } as const;
    worked('anthropic', undefined);
    worked('anthropic', outage);
    await settled();
    expect(ended).toEqual([outage]);
  });
});
