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
  it('admits requests without a budget, even without a price', () => {
    expect(decide([], { mostUsd: null, runHasOpenRequest: true }).kind).toBe('admit');
  });

  it('admits several requests of a run while all of them fit', () => {
    expect(decide([cost(2, 6)], second).kind).toBe('admit');
    expect(decide([cost(2, 6.5)], second).kind).toBe('wait');
  });

  it('admits the only open request of a run near the end of the budget', () => {
    expect(decide([cost(9.99)], alone).kind).toBe('admit');
    expect(decide([cost(9.99, 2)], alone).kind).toBe('admit');
  });

  it('refuses if the budget is used up, and names the budget', () => {
    expect(decide([turns(1), cost(10)], alone)).toEqual({ kind: 'over', budget: cost(10) });
    expect(decide([turns(3), cost(1)], alone)).toEqual({ kind: 'over', budget: turns(3) });
    expect(decide([cost(0, 0, 0)], alone).kind).toBe('over');
  });

  it('never admits more turns than remain', () => {
    expect(decide([turns(1, 1)], second).kind).toBe('admit');
    expect(decide([turns(1, 2)], second).kind).toBe('wait');
    expect(decide([turns(2, 1)], alone).kind).toBe('wait');
  });

  it('refuses a model without a price under a budget in dollars, and admits it under a budget in turns', () => {
    const unpriced = { mostUsd: null, runHasOpenRequest: false };
    expect(decide([cost(0)], unpriced).kind).toBe('unpriced');
    expect(decide([turns(0)], unpriced).kind).toBe('admit');
  });
});
