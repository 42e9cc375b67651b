import { describe, expect, it } from 'vitest';
import { makeBuckets } from './buckets.ts';

describe('a bucket', () => {
  it('allows as many requests at once as its quota, and is refilled evenly', () => {
    const buckets = makeBuckets({ quota: 60, windowSeconds: 60 });
    for (let i = 0; i < 60; i++) buckets.take('a', 0);
    expect(buckets.read('a', 0)).toEqual({ remaining: 0, resetSeconds: 1 });
    expect(buckets.read('a', 900).remaining).toBe(0);
    expect(buckets.read('a', 1_000).remaining).toBe(1);
    expect(buckets.read('a', 30_000)).toEqual({ remaining: 30, resetSeconds: 30 });
    expect(buckets.read('a', 1_000_000)).toEqual({ remaining: 60, resetSeconds: 0 });
  });

  it('allows in any period at most its quota and the requests that were refilled in this period', () => {
    const buckets = makeBuckets({ quota: 10, windowSeconds: 60 });
    let admitted = 0;
    for (let now = 0; now <= 120_000; now += 50) {
      if (buckets.read('a', now).remaining < 1) continue;
      buckets.take('a', now);
      admitted += 1;
    }
    expect(admitted).toBe(30);
  });

  it('belongs to only one caller', () => {
    const buckets = makeBuckets({ quota: 1, windowSeconds: 60 });
    buckets.take('a', 0);
    expect([buckets.read('a', 0).remaining, buckets.read('b', 0).remaining]).toEqual([0, 1]);
  });

  it('is forgotten when too many other buckets have been used later', () => {
    const buckets = makeBuckets({ quota: 1, windowSeconds: 60 }, 2);
    for (const id of ['a', 'b', 'a', 'c']) buckets.take(id, 0);
    expect(['a', 'b', 'c'].map((id) => buckets.read(id, 0).remaining)).toEqual([0, 1, 0]);
  });

  it('does not lose tokens when the clock goes back', () => {
    const buckets = makeBuckets({ quota: 5, windowSeconds: 60 });
    buckets.take('a', 10_000);
    expect(buckets.read('a', 0).remaining).toBe(4);
  });
});
