/** Name on the wire of the built-in harness. */
export const builtinHarness = 'oz';

/** Returns whether a kind of harness is the built-in one, by its name or its alias. */
export const isBuiltin = (type: string | null | undefined): boolean => type === builtinHarness || type === 'builtin';
