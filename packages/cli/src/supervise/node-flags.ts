/**
 * Flags of Node for the service. Its young objects have 4 MB a half, not 16: Node lets that room grow in the first flood of
 * requests or streams, and keeps it for a long time. `docs/decisions/live-streams.md` has what it saves and costs.
 */
export const serviceNodeFlags: readonly string[] = ['--max-semi-space-size=4'];
