import type { Domain } from '../domain.ts';

export const uploadsDomain: Domain = {
  name: 'uploads',
  // Deletes the leases of processes that died.
  retention: { rows: [{ table: 'upload_leases', isOver: `expires_at < now() - interval '1 hour'` }] },
};
