import type { Domain, RowRule } from '../../platform/domain.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { acceptanceRoutes } from './routes.ts';
import type { AcceptableConversations } from './waiting-all.ts';

/**
 * Deletes a revision 90 days after the next revision was written. Until then, an ended run that executed the revision can be continued. A
 * revision that a person has accepted stays as long as the content exists, so that its difference from the present revision can be shown.
 */
const supersededRevisions: RowRule = {
  table: 'content_revisions',
  isOver: `superseded_at < now() - interval '90 days' AND (NOT is_revision_needed(content_revisions)
    OR NOT EXISTS (SELECT FROM content_revisions p WHERE p.kind = content_revisions.kind AND p.uid = content_revisions.uid
      AND p.superseded_at IS NULL))`,
};

/** Stores which revisions people have accepted. These rows are deleted together with the revision. */
export const acceptancesDomain = (
  { db }: { readonly db: Database },
  conversations: AcceptableConversations,
): Domain => ({
  name: 'acceptances',
  routes: () => acceptanceRoutes({ db, conversations }),
  retention: { rows: [supersededRevisions] },
});
