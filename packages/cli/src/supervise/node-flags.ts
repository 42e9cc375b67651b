/**
 * Node's flags for the service. They limit each half of the space for young objects to 4 MB: without the limit, many
 * requests or streams make both halves several times as large, and they stay large while the service is idle. They also
 * let the space for old objects grow only by half before the next collection. See `docs/decisions/node-flags.md`.
 */
export const serviceNodeFlags: readonly string[] = ['--max-semi-space-size=4', '--heap-growing-percent=50'];
