/** Evaluates payload filters. */

import type {
  FieldChecks,
  FieldPlan,
  FilterValue,
  Pattern,
  PayloadFilter,
} from '@runyard/contract/automations/payload-filter/plan';
import { maxComparisons } from '@runyard/contract/limits';

/** `too_much_work`: the evaluation needs too many comparisons, so the body does not match. */
export type FilterOutcome = 'match' | 'no_match' | 'too_much_work';

/** How many comparisons are left. The evaluation stops when none is left. */
export interface Budget {
  left: number;
}

export const unlimited = (): Budget => ({ left: Number.POSITIVE_INFINITY });

/** Takes at most `most` comparisons from a larger budget. `giveBack` returns the unused comparisons to it. */
export function takePart(total: Budget, most: number): Budget {
  const part = { left: Math.min(most, total.left) };
  total.left -= part.left;
  return part;
}

export function giveBack(total: Budget, part: Budget): void {
  total.left += Math.max(part.left, 0);
}

/** Thrown if the budget is used up. Caught inside of this folder. */
export class OutOfBudget extends Error {}

/** Uses one comparison. @throws OutOfBudget */
export function spend(budget: Budget): void {
  budget.left -= 1;
  if (budget.left < 0) throw new OutOfBudget();
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Evaluates the filter on a parsed JSON body. The time and the depth of the stack are limited, whatever the body contains. `total`:
 * the budget that is left for all filters on this body.
 */
export function evaluatePayloadFilter(
  filter: PayloadFilter,
  body: unknown,
  total: Budget = unlimited(),
): FilterOutcome {
  if (filter.pattern.length === 0) return 'match';
  if (!isObject(body)) return 'no_match';
  const part = takePart(total, maxComparisons);
  try {
    return matchesPattern(filter.pattern, body, part) ? 'match' : 'no_match';
  } catch (error) {
    if (error instanceof OutOfBudget) return 'too_much_work';
    throw error;
  } finally {
    giveBack(total, part);
  }
}

/**
 * Returns a member of an object; undefined if the object does not have the member. Reads only the object's own members, so a name such
 * as `constructor` does not reach the prototype.
 */
export function memberOf(value: unknown, key: string): { readonly value: unknown } | undefined {
  return isObject(value) && Object.hasOwn(value, key) ? { value: value[key] } : undefined;
}

/** Returns true if the value, an object or not, passes each condition of the pattern. */
export function matchesPattern(pattern: Pattern, value: unknown, budget: Budget): boolean {
  return pattern.every((field) => matchesField(field, value, budget));
}

export function matchesField(field: FieldPlan, parent: unknown, budget: Budget): boolean {
  spend(budget);
  const found = memberOf(parent, field.key);
  if (field.kind === 'checks') return passesChecks(field.checks, found, budget);
  if (found !== undefined && Array.isArray(found.value))
    return found.value.some((element) => matchesPattern(field.pattern, element, budget));
  return matchesPattern(field.pattern, found?.value, budget);
}

function passesChecks(checks: FieldChecks, found: { readonly value: unknown } | undefined, budget: Budget): boolean {
  if (checks.exists !== undefined && checks.exists !== (found !== undefined)) return false;
  if (checks.in && (found === undefined || !holdsOneOf(found.value, checks.in, budget))) return false;
  return checks.notIn === undefined || found === undefined || !holdsOneOf(found.value, checks.notIn, budget);
}

/**
 * Returns true if the value is in `values`, or if the value is an array and one of its elements is in `values`. Values are equal only
 * if they have the same JSON type.
 */
export function holdsOneOf(value: unknown, values: ReadonlySet<FilterValue>, budget: Budget): boolean {
  // The set contains only scalars, so an object is never in the set. A JavaScript set treats -0 as 0.
  if (!Array.isArray(value)) return values.has(value as FilterValue);
  return value.some((element) => {
    spend(budget);
    return values.has(element as FilterValue);
  });
}
