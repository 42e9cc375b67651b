/** Parses payload filters. */
import { memberPath, shownPath } from './path.ts';
import {
  type FieldChecks,
  type FieldPlan,
  type FilterValue,
  maxFilterKeys,
  maxFilterLevels,
  maxFilterTextLength,
  maxFilterValues,
  type Pattern,
  type PayloadFilter,
} from './plan.ts';

/**
 * A fault at one place of a filter. `path` is empty if the fault concerns the whole filter. `reason` is the rest of a sentence that
 * begins with the path.
 */
export interface FilterFault {
  readonly path: string;
  readonly reason: string;
  /** The place of the fault as a list of keys and indexes. From this list, callers can find the line in a file. */
  readonly at: readonly (string | number)[];
}

export type ParsedPayloadFilter =
  | { readonly ok: true; readonly filter: PayloadFilter }
  | { readonly ok: false; readonly faults: readonly FilterFault[] };

const operators = new Set(['in', 'not_in', 'exists']);
/** Maximum number of faults that one answer lists. */
const maxFaults = 20;

type Place = readonly (string | number)[];

/** Number of keys, values and faults that the parser has found so far. */
interface State {
  keys: number;
  readonly faults: FilterFault[];
}

function addFault(state: State, at: Place, reason: string): undefined {
  if (state.faults.length < maxFaults) {
    const path = shownPath(at.reduce<string>((parent, name) => memberPath(parent, name), ''));
    state.faults.push({ path, reason, at });
  }
  return undefined;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const kindOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value);

/**
 * Parses a payload filter, which is a value of JSON or YAML. The grammar: `{field: [values]}`, `{field: {in, not_in, exists}}` and
 * `{field: {nested field: …}}`.
 * @returns the compiled filter, or each fault with its place
 */
export function parsePayloadFilter(value: unknown): ParsedPayloadFilter {
  const state: State = { keys: 0, faults: [] };
  if (!isObject(value)) {
    addFault(state, [], `must be an object that mirrors the body, not ${kindOf(value)}`);
    return { ok: false, faults: state.faults };
  }
  const pattern = parsePattern(state, value, [], 1);
  return pattern === undefined || state.faults.length > 0
    ? { ok: false, faults: state.faults }
    : { ok: true, filter: { pattern } };
}

function parsePattern(state: State, value: Record<string, unknown>, at: Place, level: number): Pattern | undefined {
  if (level > maxFilterLevels) return addFault(state, at, `must not nest deeper than ${maxFilterLevels} levels`);
  const fields: FieldPlan[] = [];
  for (const key of Object.keys(value)) {
    state.keys += 1;
    if (state.keys > maxFilterKeys)
      return addFault(state, at, `must not have more than ${maxFilterKeys} keys in total`);
    const here = [...at, key];
    if (operators.has(key))
      addFault(
        state,
        here,
        at.length === 0
          ? `is an operator, which belongs to a field; a filter cannot check a payload field named ${key}`
          : `is an operator and cannot be mixed with fields; a filter cannot check a payload field named ${key}`,
      );
    else {
      const fault = textFault(key);
      const field =
        fault === undefined ? parseField(state, key, value[key], here, level) : addFault(state, here, fault);
      if (field) fields.push(field);
    }
  }
  return fields;
}

function parseField(state: State, key: string, value: unknown, at: Place, level: number): FieldPlan | undefined {
  if (Array.isArray(value)) {
    const values = parseValues(state, value, at);
    return values && { key, kind: 'checks', checks: { in: values } };
  }
  if (!isObject(value))
    return addFault(
      state,
      at,
      `must be an array of values or an object; to match one value, write [${preview(value)}]`,
    );
  const names = Object.keys(value);
  if (names.length === 0)
    return addFault(state, at, 'checks nothing: add values, operators or nested fields, or leave the key out');
  if (names.every((name) => operators.has(name))) {
    const checks = parseOperators(state, value, at);
    return checks && { key, kind: 'checks', checks };
  }
  const pattern = parsePattern(state, value, at, level + 1);
  return pattern && { key, kind: 'pattern', pattern };
}

function parseOperators(state: State, value: Record<string, unknown>, at: Place): FieldChecks | undefined {
  const checks: { -readonly [N in keyof FieldChecks]: FieldChecks[N] } = {};
  for (const [name, operand] of Object.entries(value)) {
    const here = [...at, name];
    if (name === 'exists') {
      if (typeof operand === 'boolean') checks.exists = operand;
      else addFault(state, here, 'must be true or false');
    } else if (Array.isArray(operand)) {
      const values = parseValues(state, operand, here);
      if (values) checks[name === 'in' ? 'in' : 'notIn'] = values;
    } else
      addFault(state, here, `must be an array of values${isScalar(operand) ? `, such as [${preview(operand)}]` : ''}`);
  }
  return checks;
}

function parseValues(state: State, list: readonly unknown[], at: Place): ReadonlySet<FilterValue> | undefined {
  if (list.length === 0) return addFault(state, at, 'lists no value');
  if (list.length > maxFilterValues)
    return addFault(state, at, `must not list more than ${maxFilterValues} values, and lists ${list.length}`);
  const values = new Set<FilterValue>();
  for (const [index, value] of list.entries()) {
    const here = [...at, index];
    const fault = valueFault(value);
    if (fault === undefined && isScalar(value)) values.add(value);
    else addFault(state, here, fault ?? '');
  }
  return values;
}

function valueFault(value: unknown): string | undefined {
  if (typeof value === 'string') return textFault(value);
  if (typeof value === 'number' && !isExact(value))
    return 'is a number that cannot be compared exactly: whole numbers go up to 9007199254740991';
  return isScalar(value) ? undefined : `must be a string, a number, true, false or null, not ${kindOf(value)}`;
}

/** Returns the reason why a key or a text is not accepted. PostgreSQL stores neither U+0000 nor lone surrogates. */
function textFault(text: string): string | undefined {
  if (text.length > maxFilterTextLength) return `must not be longer than ${maxFilterTextLength} characters`;
  if (text.includes('\u0000')) return 'must not contain the NUL character (U+0000)';
  return text.isWellFormed() ? undefined : 'must not contain half of a surrogate pair';
}

const isScalar = (value: unknown): value is FilterValue =>
  value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';

/**
 * Returns false for numbers that JSON parsers round. Such a number in a filter would also match other numbers that are rounded to the same
 * value.
 */
const isExact = (value: number): boolean => Number.isFinite(value) && Math.abs(value) <= Number.MAX_SAFE_INTEGER;

const preview = (value: unknown): string => {
  const text = JSON.stringify(value) ?? '…';
  return text.length > 40 ? '…' : text;
};
