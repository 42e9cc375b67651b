/** Name of the built-in harness in the API. */
export const builtinHarness = 'oz';

/** Returns true if this name or alias means the built-in harness. */
export const isBuiltin = (type: string | null | undefined): boolean => type === builtinHarness || type === 'builtin';
