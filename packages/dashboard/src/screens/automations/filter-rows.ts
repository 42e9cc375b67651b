/**
 * Converts a payload filter to rows, with one row for each condition of a field, and converts rows back to a filter. `docs/webhooks.md` has
 * the grammar of filters.
 */

/** A value with which a field is compared. The number `1` and the text `"1"` are different values. */
export type FilterValue = string | number | boolean | null;

export const conditions = ['in', 'not_in', 'exists', 'missing'] as const;
export type Condition = (typeof conditions)[number];

export interface FilterRow {
  /** Path of the field: names with dots between them, such as `pull_request.user.login`. */
  readonly path: string;
  readonly condition: Condition;
  readonly values: readonly FilterValue[];
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the conditions of a filter as rows, in the order of the filter. */
export function rowsOf(filter: unknown, path = ''): FilterRow[] {
  if (!isObject(filter)) return [];
  return Object.entries(filter).flatMap(([name, value]): FilterRow[] => {
    const at = path === '' ? name : `${path}.${name}`;
    if (Array.isArray(value)) return [{ path: at, condition: 'in', values: value }];
    if (!isObject(value)) return [];
    const rows: FilterRow[] = [];
    if (Array.isArray(value.in)) rows.push({ path: at, condition: 'in', values: value.in });
    if (Array.isArray(value.not_in)) rows.push({ path: at, condition: 'not_in', values: value.not_in });
    if (typeof value.exists === 'boolean')
      rows.push({ path: at, condition: value.exists ? 'exists' : 'missing', values: [] });
    return rows.length > 0 ? rows : rowsOf(value, at);
  });
}

/** Returns the operator of the filter grammar for the condition of a row. A field can have each operator at most once. */
const kindOf = (condition: Condition) => (condition === 'in' || condition === 'not_in' ? condition : 'exists');

/**
 * Returns the effect of an earlier row with the same field and operator on this row; undefined if there is no such row. `joined`: the
 * values of this row are added to the earlier row. `ignored`: the rows contradict each other, and only the earlier row counts, because a
 * field cannot both exist and be missing.
 */
export function clashOf(rows: readonly FilterRow[], index: number): 'joined' | 'ignored' | undefined {
  const row = rows[index];
  if (row === undefined || row.path.trim() === '') return undefined;
  const above = rows
    .slice(0, index)
    .find(({ path, condition }) => path.trim() === row.path.trim() && kindOf(condition) === kindOf(row.condition));
  if (above === undefined) return undefined;
  return kindOf(row.condition) === 'exists' ? (above.condition === row.condition ? undefined : 'ignored') : 'joined';
}

/**
 * Returns the filter that the rows describe. Skips rows without a field, and rows without a value if their condition needs a value. If
 * several rows have the same field and operator, see `clashOf`.
 */
export function filterOf(rows: readonly FilterRow[]): Record<string, unknown> {
  const filter: Record<string, unknown> = {};
  for (const { path, condition, values } of rows) {
    const names = path.split('.').map((name) => name.trim());
    if (names.some((name) => name === '')) continue;
    if ((condition === 'in' || condition === 'not_in') && values.length === 0) continue;
    let place = filter;
    for (const name of names.slice(0, -1)) {
      const next = isObject(place[name]) ? { ...place[name] } : {};
      place[name] = next;
      place = next;
    }
    const last = names.at(-1) ?? '';
    const before = isObject(place[last]) ? place[last] : {};
    const kind = kindOf(condition);
    const earlier = before[kind];
    const check =
      kind === 'exists'
        ? (earlier ?? condition === 'exists')
        : [...new Set([...(Array.isArray(earlier) ? earlier : []), ...values])];
    place[last] = { ...before, [kind]: check };
  }
  return filter;
}

/** Returns a filter in a form that can be compared: each plain list is written as the operator `in`, and the members are sorted. */
function normalised(filter: unknown): unknown {
  if (Array.isArray(filter)) return { in: filter };
  if (!isObject(filter)) return filter;
  return Object.fromEntries(
    Object.entries(filter)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, value]) => [
        name,
        (name === 'in' || name === 'not_in') && Array.isArray(value) ? value : normalised(value),
      ]),
  );
}

/** Returns true if rows can show the whole filter. They cannot, for example, if the name of a field contains a dot. */
export const areRowsWhole = (filter: unknown): boolean =>
  JSON.stringify(normalised(filterOf(rowsOf(filter)))) === JSON.stringify(normalised(filter ?? {}));

/**
 * Converts the input of a person to a value. A number, true, false, null or a text in quotes is parsed as JSON. Any other input is a text.
 */
export function readValue(text: string): FilterValue {
  if (/^(?:-?\d+(?:\.\d+)?|true|false|null|".*")$/.test(text.trim())) {
    try {
      return JSON.parse(text) as FilterValue;
    } catch {
      return text;
    }
  }
  return text;
}

/**
 * Returns the rows with the condition that the field at `path` has this value. The path is that of a payload, such as `items[2].state`. A
 * filter names no place in a list: a condition of a list is met if one of its elements meets it. Returns the same rows if the field cannot
 * be a condition, because its name has other characters than a row can hold.
 */
export function withValue(rows: readonly FilterRow[], path: string, value: unknown): readonly FilterRow[] {
  const field = path.replaceAll(/\[\d+\]/g, '');
  const isPlain = value === null || ['string', 'number', 'boolean'].includes(typeof value);
  if (field === '' || field.includes('[') || !isPlain) return rows;
  const index = rows.findIndex((row) => row.path.trim() === field && row.condition === 'in');
  const row = rows[index];
  const added = value as FilterValue;
  if (row === undefined) return [...rows, { path: field, condition: 'in', values: [added] }];
  return row.values.includes(added) ? rows : rows.with(index, { ...row, values: [...row.values, added] });
}
