/** Name of the built-in harness in the API. */
export const builtinHarness = 'oz';

/** Another name of the built-in harness in requests and definition files. */
export const builtinAlias = 'builtin';
