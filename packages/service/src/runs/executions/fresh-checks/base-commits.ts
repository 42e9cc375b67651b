import type { BaseCommit } from '@runyard/contract/runs/agent-events';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, json } from '../../../platform/store/database/statement.ts';

const store = defineStatement({
  name: 'store_base_commits',
  text: `INSERT INTO base_commits (run_id, commits) VALUES ($1, $2)
    ON CONFLICT (run_id) DO UPDATE SET commits = excluded.commits`,
  row: {},
});

/**
 * Stores the commits that a run has cloned. The caller has just started the execution, in new clones: only before that, the harness has had no chance to
 * change what the agent reports.
 */
export async function storeBaseCommits(tx: Queryable, runId: string, commits: readonly BaseCommit[]): Promise<void> {
  await tx.query(store, [runId, JSON.stringify(commits)]);
}

/** A run that continues a conversation has restored the clones of an earlier run of this conversation. */
const read = defineStatement({
  name: 'read_base_commits',
  text: `
    SELECT b.commits FROM runs r JOIN runs o ON o.conversation_id = r.conversation_id AND o.team_id = r.team_id AND o.created_at <= r.created_at
      JOIN base_commits b ON b.run_id = o.id
    WHERE r.id = $1 ORDER BY o.created_at DESC, o.id DESC LIMIT 1`,
  row: { commits: json<BaseCommit[]>() },
});

/** Returns the commits at which the repositories in the workspace of a run were cloned; an empty list if they are unknown. */
export async function readBaseCommits(db: Queryable, runId: string): Promise<readonly BaseCommit[]> {
  const [row] = await db.query(read, [runId]);
  return row?.commits ?? [];
}
