/** Explains why a payload filter matches a body, or why it does not. */

import { memberPath, shownPath } from '@runyard/contract/automations/payload-filter/path';
import type {
  FieldChecks,
  FilterValue,
  Pattern,
  PayloadFilter,
} from '@runyard/contract/automations/payload-filter/plan';
import { maxComparisons } from '@runyard/contract/limits';
import { shorten } from '@runyard/contract/wire/shorten';
import {
  type Budget,
  evaluatePayloadFilter,
  giveBack,
  holdsOneOf,
  matchesField,
  matchesPattern,
  memberOf,
  OutOfBudget,
  takePart,
  unlimited,
} from './evaluate.ts';

/** One condition and its outcome. */
export interface FilterCheck {
  /** `any_element`: one element of an array must match a nested pattern. `body`: the outcome is about the body as a whole. */
  readonly check: 'in' | 'not_in' | 'exists' | 'any_element' | 'body';
  /** Path in the body, such as `data.items[2].state`; absent if `check` is `body`. */
  readonly path?: string;
  readonly passed: boolean;
  /** The value at the path and what the condition needs, in at most a few hundred characters. */
  readonly reason: string;
}

/** The answer to the question whether the filter would start a run. */
export interface FilterExplanation {
  readonly would_trigger: boolean;
  /**
   * All conditions of the filter. For a pattern on an array, these are the conditions for one element: the element that matches, or
   * else the element that passes the most conditions.
   */
  readonly checks: readonly FilterCheck[];
}

/** Largest number of characters of a found value that a reason shows. */
const maxShown = 80;
/** Largest number of elements or of allowed values that a reason lists. */
const maxListed = 5;

/** Only this many elements of an array are compared to find the element that matches best. */
const maxCompared = 200;

/** Explains the evaluation of a filter on a parsed JSON body; `would_trigger` is the result of `evaluatePayloadFilter`. */
export function explainPayloadFilter(
  filter: PayloadFilter,
  body: unknown,
  total: Budget = unlimited(),
): FilterExplanation {
  if (filter.pattern.length === 0) return whole(true, 'the filter is empty: it matches every body');
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return whole(false, `the body is ${describe(body)}, and only an empty filter matches a body that is not an object`);
  const outcome = evaluatePayloadFilter(filter, body, total);
  if (outcome === 'too_much_work')
    return whole(
      false,
      `the filter needs more than ${maxComparisons} comparisons for this body; put its conditions on fewer elements`,
    );
  const isMatch = outcome === 'match';
  // The explanation needs a budget of its own, because it compares the elements again on each level of nested arrays.
  const part = takePart(total, 3 * maxComparisons);
  try {
    return { would_trigger: isMatch, checks: explainPattern(filter.pattern, body, '', part) };
  } catch (error) {
    if (!(error instanceof OutOfBudget)) throw error;
    return whole(isMatch, 'the body has too many elements to show each condition');
  } finally {
    giveBack(total, part);
  }
}

const whole = (passed: boolean, reason: string): FilterExplanation => ({
  would_trigger: passed,
  checks: [{ check: 'body', passed, reason }],
});

function explainPattern(pattern: Pattern, value: unknown, path: string, budget: Budget): FilterCheck[] {
  return pattern.flatMap((field) => {
    const here = memberPath(path, field.key);
    const found = memberOf(value, field.key);
    if (field.kind === 'checks') return explainChecks(field.checks, found, here, budget);
    if (found !== undefined && Array.isArray(found.value))
      return explainElements(field.pattern, found.value, here, budget);
    return explainPattern(field.pattern, found?.value, here, budget);
  });
}

function explainElements(pattern: Pattern, elements: readonly unknown[], path: string, budget: Budget): FilterCheck[] {
  const at = elements.findIndex((element) => matchesPattern(pattern, element, budget));
  const passed = at >= 0;
  const shownIndex = passed ? at : nearest(pattern, elements, budget);
  const count = elements.length;
  const check: FilterCheck = {
    check: 'any_element',
    path: shownPath(path),
    passed,
    reason:
      count === 0
        ? 'the array is empty, so no element can match'
        : passed
          ? `element ${shownIndex} of ${count} matches the whole pattern`
          : `none of ${count} elements matches the whole pattern; element ${shownIndex} matches best`,
  };
  return count === 0
    ? [check]
    : [check, ...explainPattern(pattern, elements[shownIndex], memberPath(path, shownIndex), budget)];
}

/**
 * Returns the index of the element that passes the most fields of the pattern. Compares only the first `maxCompared` elements. Returns
 * 0 if there are no elements.
 */
function nearest(pattern: Pattern, elements: readonly unknown[], budget: Budget): number {
  let best = 0;
  let most = -1;
  for (const [index, element] of elements.slice(0, maxCompared).entries()) {
    const passed = pattern.filter((field) => matchesField(field, element, budget)).length;
    if (passed > most) [best, most] = [index, passed];
  }
  return best;
}

function explainChecks(
  checks: FieldChecks,
  found: { readonly value: unknown } | undefined,
  path: string,
  budget: Budget,
): FilterCheck[] {
  const rows: FilterCheck[] = [];
  const add = (check: FilterCheck['check'], passed: boolean, reason: string) =>
    rows.push({ check, path: shownPath(path), passed, reason });
  const what = found === undefined ? 'the field is missing' : `found ${describe(found.value)}`;
  if (checks.in)
    add(
      'in',
      found !== undefined && holdsOneOf(found.value, checks.in, budget),
      `${what}; allowed: ${list(checks.in)}`,
    );
  if (checks.notIn)
    add(
      'not_in',
      found === undefined || !holdsOneOf(found.value, checks.notIn, budget),
      `${what}; not allowed: ${list(checks.notIn)}`,
    );
  if (checks.exists !== undefined)
    add('exists', checks.exists === (found !== undefined), `${what}; it must ${checks.exists ? 'exist' : 'be absent'}`);
  return rows;
}

function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) {
    const first = value.slice(0, maxListed).map((element) => (isContainer(element) ? kindOf(element) : quote(element)));
    const more = value.length > maxListed ? ', …' : '';
    return `an array of ${value.length}${value.length > 0 ? ` (${first.join(', ')}${more})` : ''}`;
  }
  return isContainer(value) ? kindOf(value) : quote(value);
}

const isContainer = (value: unknown): boolean => typeof value === 'object' && value !== null;
const kindOf = (value: unknown): string => (Array.isArray(value) ? 'an array' : 'an object');

/** Writes a scalar as JSON, so that the reader can distinguish 1 from "1". */
function quote(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(shorten(value, maxShown)) : String(value);
}

function list(values: ReadonlySet<FilterValue>): string {
  const first = [...values].slice(0, maxListed).map(quote);
  return values.size > maxListed ? `${first.join(', ')} and ${values.size - maxListed} more` : first.join(', ');
}
