import { routes } from '@runyard/contract/routes';
import type { Signer } from '../../platform/secrets/signer.ts';
import { wrongCursor } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { listChanges } from './audit/list.ts';
import { serve } from './serve.ts';

/** The list of the audit log. */
export const auditRoutes = ({
  db,
  signing,
}: {
  readonly db: Database;
  readonly signing: Signer;
}): readonly ServedRoute[] => [
  serve(
    routes.listAuditEntries,
    async ({ principal, query }) => (await listChanges(db, signing, principal.teamId, query)) ?? wrongCursor(),
  ),
];
