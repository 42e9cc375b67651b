/**
 * Node's flags for the service. They limit each half of the space for young objects to 4 MB. Without the limit, many requests or
 * streams make both halves grow to a multiple of that, and they stay large while the service is idle. `docs/decisions/node-flags.md`.
 */
export const serviceNodeFlags: readonly string[] = ['--max-semi-space-size=4'];
