import type { Domain } from '../domain.ts';

export const idempotencyDomain: Domain = {
  name: 'idempotency',
  // The 24 hours of the contract.
  retention: { rows: [{ table: 'idempotency_keys', isOver: `created_at < now() - interval '24 hours'` }] },
};
