import type { AgentTask } from '@runyard/contract/agent-protocol';
import { isUuid } from '../runs/uuid.ts';
import type { Queryable, Statement } from '../store/database.ts';

const readLatest: Statement = {
  name: 'read_latest_workspace',
  text: `
    SELECT id, number, workspace_turn AS turn, workspace_blob AS blob, workspace_bytes AS size_bytes, encode(workspace_sha256, 'hex') AS sha256
    FROM executions WHERE run_id = $1 AND number <= $2 AND workspace_turn IS NOT NULL ORDER BY number DESC LIMIT 1`,
};

interface LatestRow {
  id: string;
  number: number;
  turn: number;
  blob: string | null;
  size_bytes: number | null;
  sha256: string | null;
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
