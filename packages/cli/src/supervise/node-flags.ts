/**
 * Flags of Node for the service. Its young objects have 4 MB a half: without this a flood of requests or streams lets the two
 * halves grow to a multiple of that, and they stay so while nothing happens. `docs/decisions/node-flags.md`.
 */
export const serviceNodeFlags: readonly string[] = ['--max-semi-space-size=4'];
