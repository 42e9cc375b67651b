/** For a run that continues the conversation of another run: finds the files that the other run saved. */
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, integer, nullable, text, uuid } from '../../../platform/store/database/statement.ts';
import { unexpectedPool } from '../../../team/access/worker-pools/pools.ts';
import { acceptorsOfText, authorsOfFollowup, lastFresh } from '../../executions/run-tokens/present-rights.ts';
import { isOlderThanTurn } from './read.ts';

/**
 * SQL: the rights of the run `r` were decided without this author of this text. This is also true if the decision included the author, but
 * a person who had accepted the author's earlier texts has not accepted this text.
 */
const isUnknownTo = (author: string, textId: string): string => `(
  ${author} <> jsonb_build_object('kind', r.executor_kind, 'uid', r.executor_uid)
  AND NOT (q.contents @> jsonb_build_array(jsonb_build_object('author', ${author}, 'accepted', false))
    AND ${acceptorsOfText('r.id')} <@ ${acceptorsOfText(textId)})
  AND NOT ${acceptorsOfText(textId)} @> to_jsonb(r.executor_uid))`;

/**
 * SQL: a text arrived in the conversation after the run `r` was created, so the rights of the run were decided without the author of this
 * text. A follow-up that waits counts too, because it may have run on a machine that was lost.
 */
const hasNewAuthors = `(
  EXISTS (SELECT FROM runs c JOIN followups f ON f.run_id = c.id
    CROSS JOIN LATERAL jsonb_array_elements(${authorsOfFollowup('f')}) w (author)
    WHERE c.conversation_id = r.conversation_id AND c.id <> r.id AND ${isUnknownTo('w.author', 'f.id')})
  OR EXISTS (SELECT FROM runs c JOIN run_requests cq ON cq.run_id = c.id CROSS JOIN LATERAL jsonb_array_elements(cq.contents) w (content)
    WHERE c.conversation_id = r.conversation_id AND c.id <> r.id AND c.created_at >= r.created_at
      AND w.content->'accepted' = 'false' AND ${isUnknownTo("w.content->'author'", 'c.id')}))`;

/**
 * SQL: the reason why the run `r`, in its execution `own`, does not get the files of the run `o`; NULL if it gets them. `q` and `oq` are
 * the requests of these runs. The files may contain values of secrets and clones of private repositories, so the run `r` must have the
 * rights of the run `o`.
 */
const reasonAgainst = `CASE
  WHEN (o.executor_kind, o.executor_uid) IS DISTINCT FROM (r.executor_kind, r.executor_uid)
    THEN 'the files of the conversation are those of another executor'
  WHEN o.environment_id IS DISTINCT FROM r.environment_id THEN 'the files of the conversation are from another environment'
  WHEN o.environment_revision IS DISTINCT FROM r.environment_revision THEN 'the environment has changed since'
  WHEN oq.config->'runner_config' IS DISTINCT FROM q.config->'runner_config' THEN 'the files of the conversation are from another runner'
  WHEN ${unexpectedPool('r', 'own')} IS NOT NULL
    OR (oq.rights->'personal_credentials' = 'true' AND q.rights->'personal_credentials' IS DISTINCT FROM 'true')
    OR (oq.rights->'team_credentials' IS DISTINCT FROM 'false' AND q.rights->'team_credentials' = 'false')
    OR coalesce(jsonb_typeof(oq.rights->'secrets') <> 'array' OR jsonb_typeof(q.rights->'secrets') <> 'array', true)
    OR EXISTS (SELECT FROM jsonb_array_elements(oq.rights->'secrets') s
      WHERE NOT q.rights->'secrets' @> jsonb_build_array(jsonb_build_object('id', s->'id')))
    THEN 'this run lacks some rights of the run that saved the files of the conversation, such as its secrets'
  WHEN ${hasNewAuthors}
    THEN 'texts of other people have run in the sandbox of the conversation since this run was created'
  END`;

/** Seconds in which an agent that waits for a follow-up begins to upload the files of its turn. */
const uploadBeginsSeconds = 5;

/**
 * SQL: the turn of the execution `w` is over, but the agent may still store its files. At most until the sandbox must have ended, or two minutes
 * after the turn if the agent waits for a follow-up.
 */
const isStoring = `(w.finished_at IS NOT NULL AND coalesce(w.workspace_at < w.finished_at, true) AND (
  w.phase = 'stopping' AND w.stop_deadline > clock_timestamp()
  OR w.phase = 'idle' AND w.finished_at > clock_timestamp() - interval '2 minutes' AND (
    w.finished_at > clock_timestamp() - interval '${uploadBeginsSeconds} seconds'
    OR EXISTS (SELECT FROM upload_leases l WHERE l.name = 'workspace/' || w.id || '/0' AND l.expires_at > clock_timestamp()))))`;

const readLast = defineStatement({
  name: 'read_last_workspace_of_conversation',
  text: `
    SELECT o.id AS run_id, ${reasonAgainst} AS reason, coalesce(${isStoring}, false) AS is_storing, ${isOlderThanTurn('e')} AS is_older, e.id, e.number, e.workspace_turn AS turn, e.workspace_blob AS blob,
      e.workspace_bytes AS size_bytes, encode(e.workspace_sha256, 'hex') AS sha256
    FROM runs r JOIN run_requests q ON q.run_id = r.id JOIN executions own ON own.run_id = r.id AND own.id = $2
    CROSS JOIN LATERAL (
      SELECT l.* FROM runs l WHERE l.conversation_id = r.conversation_id AND l.team_id = r.team_id AND l.id <> r.id
      ORDER BY (SELECT max(b.started_at) FROM executions b WHERE b.run_id = l.id) DESC NULLS LAST, l.id DESC LIMIT 1) o JOIN run_requests oq ON oq.run_id = o.id
    LEFT JOIN LATERAL (
      SELECT k.* FROM executions k WHERE k.run_id = o.id AND k.workspace_turn IS NOT NULL ORDER BY k.number DESC LIMIT 1) e ON true
    LEFT JOIN LATERAL (SELECT k.* FROM executions k WHERE k.run_id = o.id ORDER BY k.number DESC LIMIT 1) w ON true
    WHERE r.id = $1`,
  row: {
    run_id: uuid,
    reason: nullable(text()),
    is_storing: boolean,
    is_older: boolean,
    id: nullable(uuid),
    number: nullable(integer),
    turn: nullable(integer),
    blob: nullable(text()),
    size_bytes: nullable(integer),
    sha256: nullable(text()),
  },
});

const isOfFork = defineStatement({
  name: 'is_run_of_fork',
  text: 'SELECT FROM runs r WHERE r.id = $1 AND EXISTS (SELECT FROM forked_runs f WHERE f.conversation_id = r.conversation_id)',
  row: {},
});

/** The workspace for the agent's task. `runId`: the run that saved the files; absent: there are no files, and the task only says why. */
export interface WorkspaceOfConversation {
  readonly workspace: AgentTask['workspace'];
  readonly runId?: string;
}

/**
 * Returns the first workspace of a run that continues another run's conversation. It has the files of the conversation's previous run, or
 * the reason why the run gets no files. Returns undefined if the conversation has no other run, or if the previous run left empty folders.
 * Returns `storing` if the agent of the previous run may still store its files.
 */
export async function workspaceOfConversation(
  db: Queryable,
  { runId, executionId }: { readonly runId: string; readonly executionId: string },
): Promise<WorkspaceOfConversation | 'storing' | undefined> {
  const [row] = await db.query(readLast, [runId, executionId]);
  if (!row) {
    const [fork] = await db.query(isOfFork, [runId]);
    return fork && { workspace: { kind: 'missing', reason: 'a fork of a conversation begins without its files' } };
  }
  const { run_id, reason, id, number, turn, blob } = row;
  if (reason !== null) return { workspace: { kind: 'missing', reason } };
  if (row.is_storing) return 'storing';
  if (id === null || number === null || turn === null || (blob === null && row.is_older))
    return { workspace: { kind: 'missing' } };
  // The previous run left empty folders. There is nothing to restore, because each run begins with empty folders.
  if (blob === null) return undefined;
  return {
    runId: run_id,
    workspace: {
      kind: 'archive',
      path: `/api/v1/harness-support/workspace/${id}`,
      size_bytes: Number(row.size_bytes),
      sha256: row.sha256 ?? '',
      execution_number: number,
      turn,
      run_id,
    },
  };
}

const readBlob = defineStatement({
  name: 'read_workspace_blob',
  text: `
    SELECT e.workspace_blob AS blob FROM executions e JOIN runs o ON o.id = e.run_id JOIN run_requests oq ON oq.run_id = o.id,
      runs r JOIN run_requests q ON q.run_id = r.id JOIN executions own ON own.run_id = r.id AND own.id = $3
    WHERE e.id = $1 AND r.id = $2
      AND (o.id = r.id AND e.number >= ${lastFresh('r.id', 'own.number')} OR o.id <> r.id AND o.conversation_id = r.conversation_id AND o.team_id = r.team_id AND ${reasonAgainst} IS NULL)`,
  row: { blob: nullable(text()) },
});

/**
 * Returns the key of the archive that the given execution saved. The execution must belong to this run, since the run last began anew, or
 * to a run whose files this run may get. Returns null if there is no such archive.
 */
export async function findWorkspace(
  db: Queryable,
  { runId, executionId: own }: { readonly runId: string; readonly executionId: string },
  executionId: string,
): Promise<string | null> {
  const [row] = await db.query(readBlob, [executionId, runId, own]);
  return row?.blob ?? null;
}
