/** Resolves notifications whose cause is over although the state of the run does not change. */
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../platform/store/database/statement.ts';

const resolveReviews = defineStatement({
  name: 'resolve_reviews_of_conversation',
  text: `
    DELETE FROM inbox_items i USING runs r
    WHERE r.team_id = $1 AND r.conversation_id = $2 AND i.run_id = r.id AND i.kind = ANY($3::text[])`,
  row: {},
});

/**
 * Resolves the reviews of the runs of a conversation, because its task has moved to another stage: `spec_review` unless the stage is SPEC,
 * and all reviews if the task is complete or cancelled.
 */
export async function resolveReviewsOf(
  tx: Queryable,
  {
    teamId,
    conversationId,
    stage,
  }: { readonly teamId: string; readonly conversationId: string; readonly stage: string },
): Promise<void> {
  const isOver = stage === 'COMPLETE' || stage === 'CANCELLED';
  if (stage === 'SPEC') return;
  await tx.query(resolveReviews, [teamId, conversationId, isOver ? ['spec_review', 'pr_review'] : ['spec_review']]);
}

/**
 * Records that pull requests of the team $1 were reviewed, merged or closed. $2: their addresses in the canonical form of artifacts. The
 * notification of a run is resolved when this is true of all pull requests of the run.
 */
export const finishPullRequests = defineStatement({
  name: 'resolve_reviews_of_pull_requests',
  text: `
    WITH url AS (SELECT DISTINCT unnest($2::text[]) AS url),
    done AS (
      SELECT i.uid, array_agg(a.canonical_url) AS urls
      FROM url JOIN artifacts a ON a.team_id = $1 AND a.canonical_url = url.url AND a.artifact_type = 'PULL_REQUEST'
      JOIN inbox_items i ON i.run_id = a.run_id AND i.kind = 'pr_review'
      GROUP BY i.uid
    ), locked AS (
      SELECT i.uid, i.run_id, ARRAY(SELECT DISTINCT unnest(i.done_urls || done.urls) ORDER BY 1) AS urls FROM inbox_items i JOIN done ON done.uid = i.uid ORDER BY i.uid FOR UPDATE OF i
    ), open AS (
      SELECT l.uid FROM locked l WHERE EXISTS (
        SELECT FROM artifacts a WHERE a.run_id = l.run_id AND a.artifact_type = 'PULL_REQUEST' AND a.is_ready
          AND NOT coalesce(a.canonical_url = ANY(l.urls), false))
    ), kept AS (
      UPDATE inbox_items i SET done_urls = l.urls FROM locked l JOIN open o ON o.uid = l.uid WHERE i.uid = l.uid
    )
    DELETE FROM inbox_items i USING locked l WHERE i.uid = l.uid AND NOT EXISTS (SELECT FROM open o WHERE o.uid = l.uid)
    RETURNING i.uid`,
  row: { uid: uuid },
});
