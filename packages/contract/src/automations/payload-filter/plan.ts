/** The compiled form of a payload filter. This file imports nothing, because the evaluation of each delivery for each automation uses it. */

/** Maximum number of nested fields in a filter. `{a: {b: ["x"]}}` has two levels. */
export const maxFilterLevels = 10;
/** Maximum number of fields in a filter, on all levels together. */
export const maxFilterKeys = 100;
/** Values of one list. */
export const maxFilterValues = 100;
/** Characters of a filter's key or of a text in its lists. */
export const maxFilterTextLength = 1_000;

/** A value that a list of a filter may contain. */
export type FilterValue = string | number | boolean | null;

/** The operators that apply to one field; all of them must pass. */
export interface FieldChecks {
  readonly in?: ReadonlySet<FilterValue>;
  readonly notIn?: ReadonlySet<FilterValue>;
  readonly exists?: boolean;
}

/** The conditions on one field: either operators, or a pattern for the object in the field. */
export type FieldPlan = { readonly key: string } & (
  | { readonly kind: 'checks'; readonly checks: FieldChecks }
  | { readonly kind: 'pattern'; readonly pattern: Pattern }
);

/** The conditions on an object; all must pass. */
export type Pattern = readonly FieldPlan[];

/** A checked payload filter. Without fields it matches every body. */
export interface PayloadFilter {
  readonly pattern: Pattern;
}
