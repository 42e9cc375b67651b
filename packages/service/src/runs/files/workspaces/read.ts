import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  nullable,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { type HandoffFile, readHandoff, readLatestHandoff } from '../handoffs/read.ts';

/**
 * SQL: the execution `e`, or a later one of its run, has worked since the files of `e` were stored. If these files are empty, later files may
 * be lost. A service of an earlier version stored that the folders were empty just before the end of the turn.
 */
export const isOlderThanTurn = (e: string): string => `coalesce(
  ${e}.workspace_turn < ${e}.finished_turns OR ${e}.workspace_at < ${e}.finished_at - interval '1 second'
  OR EXISTS (SELECT FROM executions n WHERE n.run_id = ${e}.run_id AND n.number > ${e}.number AND n.started_at IS NOT NULL), false)`;

/**
 * Returns the session of the harness only if no turn began after the session was saved, because the session would not contain that turn.
 * For a resumed turn (`$3`) the session is returned in any case, because the agent also gets the record of the later events.
 */
const readLatest = defineStatement({
  name: 'read_latest_workspace',
  text: `
    SELECT e.id, e.number, e.workspace_turn AS turn, e.workspace_blob AS blob, e.workspace_bytes AS size_bytes,
      encode(e.workspace_sha256, 'hex') AS sha256,
      ${isOlderThanTurn('e')} AS is_older, e.workspace_seq AS seq, e.workspace_done AS done, e.workspace_at AS kept_at,
      CASE WHEN $3 OR NOT e.workspace_is_checkpoint AND e.workspace_turn = (
        SELECT count(*) FROM conversation_events v JOIN executions p ON p.id = v.execution_id
        WHERE v.run_id = $1 AND v.event->>'type' = 'turn_started' AND p.number BETWEEN e.number AND $2
      ) THEN e.workspace_session END AS session
    FROM executions e WHERE e.run_id = $1 AND e.number <= $2 AND e.number >= $4 AND e.workspace_turn IS NOT NULL
    ORDER BY e.number DESC LIMIT 1`,
  row: {
    id: uuid,
    number: integer,
    turn: integer,
    blob: nullable(text()),
    size_bytes: nullable(integer),
    sha256: nullable(text()),
    session: nullable(text()),
    is_older: boolean,
    seq: nullable(integer),
    done: integer,
    kept_at: nullable(timestamp),
  },
});

/** The files with which an execution begins, and the number of the conversation's last event when they were saved. */
export interface RestorableWorkspace {
  readonly workspace: AgentTask['workspace'];
  /** Number of the last event whose effects are in the archive; undefined if it is unknown, or if nothing is restored. */
  readonly seq?: number | undefined;
  /** Number of runbook commands whose effects are in the archive. */
  readonly doneBlocks: number;
  /** RFC 3339 in UTC. */
  readonly keptAt?: string | undefined;
}

const patchName = /^(.+)\.patch$/;

/** Returns the last stored changes of the run's repositories, as the agent gets them. */
async function storedChanges(db: Queryable, runId: string): Promise<AgentTask['workspace']> {
  return patchesIn(await readLatestHandoff(db, runId));
}

/** Returns the changes that a check runs on. If they were replaced, returns that they are missing. */
export async function changesToCheck(db: Queryable, snapshotId: string): Promise<NonNullable<AgentTask['workspace']>> {
  const files = await readHandoff(db, snapshotId);
  return files === null ? { kind: 'missing', reason: 'the stored changes were replaced' } : patchesIn(files);
}

function patchesIn(files: readonly HandoffFile[]): NonNullable<AgentTask['workspace']> {
  const patches = files.flatMap(({ id, filename, sizeBytes, mimeType }) => {
    const [, folder] = patchName.exec(filename) ?? [];
    if (folder === undefined || mimeType !== 'text/x-diff') return [];
    return [{ folder, path: `/api/v1/harness-support/changes/${id}`, size_bytes: Number(sizeBytes) }];
  });
  return { kind: 'changes', patches };
}

/**
 * Returns the workspace for a new execution. `continues` is the number of the execution of the same run that the new execution continues.
 * `resumes` is the number of the execution whose lost turn the new execution resumes. If both are null, the new execution begins with the
 * run's prompt in a new workspace. `fresh`: number of the last execution that began with only the stored changes; 0 if there is none. Of the executions
 * before it, only the stored changes are used.
 */
export async function workspaceToRestore(
  db: Queryable,
  runId: string,
  {
    continues,
    resumes,
    fresh,
  }: { readonly continues: number | null; readonly resumes: number | null; readonly fresh: number },
): Promise<RestorableWorkspace> {
  const upTo = resumes ?? continues;
  if (upTo === null) return { workspace: undefined, doneBlocks: 0 };
  const [row] = await db.query(readLatest, [runId, upTo, resumes !== null, fresh]);
  if (!row) return { workspace: fresh > 0 ? await storedChanges(db, runId) : { kind: 'missing' }, doneBlocks: 0 };
  const position = { seq: row.seq ?? undefined, doneBlocks: row.done, keptAt: row.kept_at ?? undefined };
  if (row.blob === null && row.is_older && resumes === null) return { workspace: { kind: 'missing' }, doneBlocks: 0 };
  if (row.blob === null) return { ...position, workspace: { kind: 'empty' } };
  const workspace = {
    kind: 'archive' as const,
    path: `/api/v1/harness-support/workspace/${row.id}`,
    size_bytes: Number(row.size_bytes),
    sha256: row.sha256 ?? '',
    execution_number: row.number,
    turn: row.turn,
    ...(row.session === null ? {} : { session_id: row.session }),
  };
  return { ...position, workspace };
}
