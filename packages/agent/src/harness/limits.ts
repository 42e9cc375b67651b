/** As the contract's `maxOutputBytes`; repeated because its module would load the schemas (28 ms of zod) on every start. */
export const maxOutputBytes = 64 * 1024;
