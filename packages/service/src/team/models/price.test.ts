import { describe, expect, it } from 'vitest';
import { catalogue } from './catalogue.ts';
import { chargeOf, costOf, mostCost, priceAt, totalOf } from './price.ts';

const tokens = { input: 1_000_000, output: 100_000, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0 };
const priceOf = (name: string, day: string) => {
  const model = catalogue.find((each) => each.providerModel === name);
  return priceAt(model?.prices ?? [], new Date(`${day}T12:00:00Z`));
};

describe('the cost of a request', () => {
  it('is the sum of the costs of each kind of token', () => {
    const cost = costOf(
      { input: 10_000, output: 1_000, cacheRead: 20_000, cacheWrite: 5_000, cacheWriteLong: 2_000 },
      priceOf('claude-opus-5-5', '2026-11-21'),
    );
    expect(cost).toEqual({ input: 0.04, output: 0.02, cacheRead: 0.004, cacheWrite: 0.015 + 0.016 });
    expect(cost && totalOf(cost)).toBeCloseTo(0.095, 12);
  });

  it('is unknown if one used kind of token has no price', () => {
    expect(costOf(tokens, undefined)).toBeNull();
    expect(costOf({ ...tokens, cacheRead: 1 }, priceOf('gemini-4-hydrogen', '2026-11-21'))).toBeNull();
    expect(costOf(tokens, priceOf('gemini-4-hydrogen', '2026-11-21'))).not.toBeNull();
  });

  it('is computed with the long-prompt price for the whole request if the prompt, with its cached tokens, is above the limit', () => {
    const price = priceOf('claude-haiku-5-5', '2026-11-21');
    const at = { ...tokens, input: 40_000, cacheRead: 50_000, cacheWrite: 10_000, output: 0 };
    expect(costOf(at, price)?.input).toBeCloseTo(0.004, 12);
    expect(costOf({ ...at, cacheRead: 50_001 }, price)?.input).toBeCloseTo(0.02, 12);
    expect(costOf({ ...tokens, input: 272_001 }, priceOf('gpt-6.1-sol', '2026-11-21'))?.output).toBeCloseTo(1.5, 12);
  });

  it('changes on the day for which a new price is announced', () => {
    expect(priceOf('gemini-4-carbon', '2026-11-30')?.input).toBe(2);
    expect(priceOf('gemini-4-carbon', '2026-12-01')).toMatchObject({ input: 4, output: 20, cacheRead: 0.2 });
    expect(priceOf('claude-sonnet-5-5', '2026-10-06')?.cacheRead).toBe(0.2);
    expect(priceOf('claude-sonnet-5-5', '2026-10-07')?.cacheRead).toBe(0.1);
  });
});

describe('the catalogue', () => {
  it('contains each model once, with positive prices that are sorted by day', () => {
    const ids = catalogue.flatMap((model) =>
      [model.providerModel, ...(model.aliases ?? [])].map((name) => `${model.provider}/${name}`),
    );
    expect(new Set(ids).size).toBe(ids.length);
    for (const model of catalogue) {
      expect(Object.isFrozen(model)).toBe(true);
      const days = model.prices.map((price) => price.from ?? '');
      expect(days).toEqual([...days].sort());
      for (const price of model.prices) {
        for (const rate of [
          price.input,
          price.output,
          price.cacheRead ?? 1,
          price.cacheWrite ?? 1,
          price.cacheWriteLong ?? 1,
        ]) {
          expect(rate).toBeGreaterThan(0);
        }
        expect(price.output).toBeGreaterThan(price.input);
        if (price.longPrompt !== undefined) expect(price.longPrompt.input).toBeGreaterThan(price.input);
      }
    }
  });
});

describe('the amount that a request counts against budgets', () => {
  it('is its cost if all prices are known', () => {
    const price = priceOf('claude-opus-5-5', '2026-11-21');
    expect(chargeOf(tokens, price)).toBeCloseTo(4 + 2, 12);
  });

  it('is an upper bound if one kind of token has no price', () => {
    const price = priceOf('gemini-4-hydrogen', '2026-11-21');
    expect(chargeOf({ ...tokens, cacheRead: 1_000_000 }, price)).toBeCloseTo(1.5 + 0.75 + 1.5, 12);
    expect(chargeOf(tokens, undefined)).toBe(0);
  });

  it('is never more than the maximum cost of a request of this size', () => {
    const price = priceOf('claude-haiku-5-5', '2026-11-21');
    const cacheWrite = { input: 0, output: 10, cacheRead: 0, cacheWrite: 200_000, cacheWriteLong: 200_000 };
    expect(price && mostCost({ prompt: 200_000, output: 10 }, price)).toBeGreaterThanOrEqual(
      chargeOf(cacheWrite, price),
    );
  });
});
