/**
 * The compiled form of a payload filter, and the limits of a filter.
 */

/** Maximum number of nested fields in a filter. `{a: {b: ["x"]}}` has two levels. */
export const maxFilterLevels = 10;
/** Maximum number of fields in a filter, on all levels together. */
export const maxFilterKeys = 100;
/** Maximum number of values in one list of a filter. */
export const maxFilterValues = 100;
/** Maximum number of characters of a key of a filter, and of a text in a list of a filter. */
export const maxFilterTextLength = 1_000;

/** A value that a list of a filter may contain. */
export type FilterValue = string | number | boolean | null;

/** The operators that apply to one field. The field matches if all operators are satisfied. */
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

/** The conditions on an object. The object matches if all conditions are satisfied. */
export type Pattern = readonly FieldPlan[];

/** A checked payload filter. Without fields it matches every body. */
export interface PayloadFilter {
  readonly pattern: Pattern;
}
