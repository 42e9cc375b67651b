import type { Domain } from '../domain.ts';

export const idempotencyDomain: Domain = {
  name: 'idempotency',
  retention: {
    rows: [
      // The contract promises that a repeat with the same `Idempotency-Key` gets the stored answer for 24 hours.
      { table: 'idempotency_keys', isOver: `created_at < now() - interval '24 hours'` },
      // Published clients repeat a request for 10 minutes at most.
      { table: 'client_answers', isOver: `created_at < now() - interval '10 minutes'` },
    ],
  },
};
