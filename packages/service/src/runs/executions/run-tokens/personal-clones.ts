/** Records which repositories a run read with a personal credential: its files may contain data that other people must not read. */
import type { Repository } from '@runyard/contract/environments/repositories';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text } from '../../../platform/store/database/statement.ts';

const insert = defineStatement({
  name: 'insert_personal_clones',
  text: `
    INSERT INTO personal_clones (run_id, owner, repo)
    SELECT $1, lower(o), lower(p) FROM unnest($2::text[], $3::text[]) AS r (o, p) ON CONFLICT DO NOTHING`,
  row: {},
});

/** The lock of a follow-up. So either the check of a follow-up sees the repositories, or the follow-up is committed before them. */
const lockRun = defineStatement({
  name: 'lock_run_for_clones',
  text: 'SELECT FROM runs WHERE id = $1 FOR UPDATE',
  row: {},
});

/**
 * Records that the sandbox of the run can read these repositories with a personal credential of its executor. Decide about the credential
 * again after this call, because a follow-up of somebody else may have arrived.
 */
export async function noteClones(db: Database, runId: string, repositories: readonly Repository[]): Promise<void> {
  if (repositories.length === 0) return;
  await db.transaction(async (tx) => {
    await tx.query(lockRun, [runId]);
    await tx.query(insert, [runId, repositories.map(({ owner }) => owner), repositories.map(({ repo }) => repo)]);
  });
}

const readAll = defineStatement({
  name: 'read_personal_clones_of_conversation',
  text: `
    SELECT DISTINCT c.owner, c.repo FROM runs r JOIN runs o ON o.conversation_id = r.conversation_id
    JOIN personal_clones c ON c.run_id = o.id WHERE r.id = $1 ORDER BY c.owner, c.repo`,
  row: { owner: text(), repo: text() },
});

/**
 * Returns the repositories that the sandbox of the run may contain because a personal credential could read them. The files of all runs of
 * the conversation count, because the run may have begun with them.
 */
export async function readPersonalClones(db: Queryable, runId: string): Promise<readonly Repository[]> {
  return await db.query(readAll, [runId]);
}

/**
 * Returns whether the sandbox of the run may contain more such repositories than these. Holds the lock of the run until the transaction ends.
 */
export async function hasMoreClones(tx: Queryable, runId: string, known: readonly Repository[]): Promise<boolean> {
  await tx.query(lockRun, [runId]);
  return (await readPersonalClones(tx, runId)).some(
    ({ owner, repo }) => !known.some((each) => each.owner === owner && each.repo === repo),
  );
}
