/**
 * Node's flags for the service. They limit each half of the space for young objects to 4 MB. Without the limit, many requests or
 * streams make both halves grow to a multiple of that, and they stay large while the service is idle. They also let the other objects
 * grow by half, not to a multiple, before the next collection. `docs/decisions/node-flags.md`.
 */
export const serviceNodeFlags: readonly string[] = ['--max-semi-space-size=4', '--heap-growing-percent=50'];
