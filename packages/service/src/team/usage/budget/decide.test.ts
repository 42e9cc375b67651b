import { describe, expect, it } from 'vitest';
import { type Budget, decide } from './decide.ts';

const cost = (used: number, reserved = 0, limit = 10): Budget => ({
  kind: 'run_cost',
  runId: 'a',
  limit,
  used,
  reserved,
});
const turns = (used: number, reserved = 0, limit = 3): Budget => ({
  kind: 'run_turns',
  runId: 'a',
  limit,
  used,
  reserved,
});
const alone = { mostUsd: 2, runHasOpenRequest: false };
const second = { mostUsd: 2, runHasOpenRequest: true };

describe('the decision about a request to a model', () => {
  it('allows requests if there is no budget, even if the model has no price', () => {
    expect(decide([], { mostUsd: null, runHasOpenRequest: true }).kind).toBe('admit');
  });

  it('allows several requests of a run at the same time while all of them together fit the budget', () => {
    expect(decide([cost(2, 6)], second).kind).toBe('admit');
    expect(decide([cost(2, 6.5)], second).kind).toBe('wait');
  });

  it('near the end of the budget, allows a request only if it is the only open request of the run', () => {
    expect(decide([cost(9.99)], alone).kind).toBe('admit');
    expect(decide([cost(9.99, 2)], alone).kind).toBe('admit');
  });

  it('refuses the request if a budget is used up, and names this budget', () => {
    expect(decide([turns(1), cost(10)], alone)).toEqual({ kind: 'over', budget: cost(10) });
    expect(decide([turns(3), cost(1)], alone)).toEqual({ kind: 'over', budget: turns(3) });
    expect(decide([cost(0, 0, 0)], alone).kind).toBe('over');
  });

  it('never allows more turns than the budget has left', () => {
    expect(decide([turns(1, 1)], second).kind).toBe('admit');
    expect(decide([turns(1, 2)], second).kind).toBe('wait');
    expect(decide([turns(2, 1)], alone).kind).toBe('wait');
  });

  it('refuses a model without a price under a budget in dollars, and allows it under a budget in turns', () => {
    const unpriced = { mostUsd: null, runHasOpenRequest: false };
    expect(decide([cost(0)], unpriced).kind).toBe('unpriced');
    expect(decide([turns(0)], unpriced).kind).toBe('admit');
  });
});
