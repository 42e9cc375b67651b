import type { AgentTask } from '@runyard/contract/agent-protocol';
import type { Queryable, Statement } from '../../store/database/database.ts';
import { isUuid } from '../../store/database/uuid.ts';

/** A session is of use only where it knows all that was said: no turn was begun since. */
const readLatest: Statement = {
  name: 'read_latest_workspace',
  text: `
    SELECT e.id, e.number, e.workspace_turn AS turn, e.workspace_blob AS blob, e.workspace_bytes AS size_bytes,
      encode(e.workspace_sha256, 'hex') AS sha256,
      CASE WHEN e.workspace_turn = (
        SELECT count(*) FROM conversation_events v JOIN executions p ON p.id = v.execution_id
        WHERE v.run_id = $1 AND v.event->>'type' = 'turn_started' AND p.number BETWEEN e.number AND $2
      ) THEN e.workspace_session END AS session
    FROM executions e WHERE e.run_id = $1 AND e.number <= $2 AND e.workspace_turn IS NOT NULL ORDER BY e.number DESC LIMIT 1`,
};

interface LatestRow {
  id: string;
  number: number;
  turn: number;
  blob: string | null;
  size_bytes: number | null;
  sha256: string | null;
  session: string | null;
}

/** What an execution that goes on after the one numbered `continues` begins with; undefined: it begins anew. */
export async function workspaceToRestore(
  db: Queryable,
  runId: string,
  continues: number | null,
): Promise<AgentTask['workspace']> {
  if (continues === null) return undefined;
  const [row] = await db.query<LatestRow>(readLatest, [runId, continues]);
  if (!row) return { kind: 'missing' };
  if (row.blob === null) return { kind: 'empty' };
  return {
    kind: 'archive',
    path: `/api/v1/harness-support/workspace/${row.id}`,
    size_bytes: Number(row.size_bytes),
    sha256: row.sha256 ?? '',
    execution_number: row.number,
    turn: row.turn,
    ...(row.session === null ? {} : { session_id: row.session }),
  };
}

const readBlob: Statement = {
  name: 'read_workspace_blob',
  text: 'SELECT workspace_blob AS blob FROM executions WHERE id = $1 AND run_id = $2',
};

/** Blob of what an execution of the run left; null: there is none. */
export async function findWorkspace(db: Queryable, runId: string, executionId: string): Promise<string | null> {
  if (!isUuid(executionId)) return null;
  const [row] = await db.query<{ blob: string | null }>(readBlob, [executionId, runId]);
  return row?.blob ?? null;
}
