/** Gives follow-ups to agents as prompts. Each follow-up is taken only once, under the lock of the run's row. */

import type { Decision } from '@runyard/contract/runs/approvals';
import type { AnsweredBy, RunMode } from '@runyard/contract/runs/message-origin';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  text,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { readProfiles } from '../../../team/access/profiles.ts';
import type { OpenRequest } from '../../executions/idle/debug-window.ts';
import { beforeStartPhases } from '../../executions/phases.ts';
import { type Attempt, lockWorkingAttempt } from '../../executions/run-tokens/attempt.ts';
import type { AttachmentRow } from '../../files/attachments/read.ts';

interface Target {
  readonly runId: string;
  readonly executionId: string;
}

const takeOne = defineStatement({
  name: 'take_followup',
  text: `
    UPDATE followups SET execution_id = $3, taken_at = clock_timestamp()
    WHERE id = $2 AND run_id = $1 AND execution_id IS NULL`,
  row: {},
});

/**
 * Marks the follow-up as taken: the agent of the execution begins a turn with this follow-up. The caller has locked the run's row.
 */
export async function takeFollowup(tx: Queryable, { runId, executionId }: Target, followupId: string): Promise<void> {
  if (isUuid(followupId)) await tx.query(takeOne, [runId, followupId, executionId]);
}

/**
 * Takes follow-ups only before the agent's first turn, because each later follow-up begins a separate turn. If the agent in the sandbox of
 * a failed setup asked a question, the question ended with that sandbox. So an answer to this question is treated as an ordinary message.
 */
const takeWaiting = defineStatement({
  name: 'take_waiting_followups',
  text: `
    WITH taken AS (
      UPDATE followups SET execution_id = $2, taken_at = clock_timestamp()
      WHERE run_id = $1 AND execution_id IS NULL
        AND EXISTS (SELECT FROM executions e WHERE e.id = $2 AND e.phase IN ${beforeStartPhases})
      RETURNING *
    )
    SELECT id, message, mode, decision, CASE WHEN NOT is_debug THEN request END AS request
    FROM (SELECT * FROM followups WHERE run_id = $1 AND execution_id = $2 UNION ALL SELECT * FROM taken) f ORDER BY position`,
  row: {
    id: uuid,
    message: text(),
    mode: nullable(text<RunMode>()),
    decision: nullable(text<Decision>()),
    request: nullable(json<OpenRequest>()),
  },
});

/** A follow-up that belongs to the first prompt of an execution. */
export interface JoinedFollowup {
  readonly id: string;
  readonly message: string;
  readonly mode: RunMode | null;
  readonly decision: Decision | null;
  /** The question of an earlier execution that this follow-up answers; null: the follow-up answers no question. */
  readonly request: OpenRequest | null;
}

/**
 * Takes all waiting follow-ups if the attempt's execution has not started its first turn: they become part of the first prompt of this
 * execution. A second call returns the same follow-ups again, and also
 * newer ones. Throws `AttemptOver`.
 */
export async function joinFollowups(tx: Queryable, attempt: Attempt): Promise<JoinedFollowup[]> {
  await lockWorkingAttempt(tx, attempt);
  return await tx.query(takeWaiting, [attempt.runId, attempt.executionId]);
}

const readFiles = defineStatement({
  name: 'read_files_of_taken_followups',
  text: `
    SELECT a.id, a.file_name, a.mime_type, a.size_bytes, f.execution_id <> $2 AS is_earlier
    FROM attachments a JOIN followups f ON f.id = a.followup_id
    WHERE a.run_id = $1 AND f.execution_id IS NOT NULL ORDER BY f.position, a.position`,
  row: { id: uuid, file_name: text(), mime_type: text(), size_bytes: integer, is_earlier: boolean },
});

/** Reads the files of the follow-ups that were taken by this execution or by an earlier execution. */
export async function readTakenFiles(
  db: Queryable,
  { runId, executionId }: Target,
): Promise<(AttachmentRow & { readonly is_earlier: boolean })[]> {
  return await db.query(readFiles, [runId, executionId]);
}

const readAuthors = defineStatement({
  name: 'read_authors_of_followups',
  text: 'SELECT id, created_by_kind AS kind, created_by_uid AS uid, mode FROM followups WHERE run_id = $1 AND id = ANY($2::uuid[])',
  row: { id: uuid, kind: text<AnsweredBy['type']>(), uid: text(), mode: nullable(text<RunMode>()) },
});

/** The author of a follow-up, and its mode. */
export interface FollowupOrigin {
  readonly by: AnsweredBy;
  readonly mode: RunMode | null;
}

/** Returns the authors and modes of these follow-ups to the run, by the follow-ups' ids. */
export async function readFollowupOrigins(
  tx: Queryable,
  { runId, teamId }: { readonly runId: string; readonly teamId: string },
  ids: readonly string[],
): Promise<ReadonlyMap<string, FollowupOrigin>> {
  const rows = await tx.query(readAuthors, [runId, ids.filter(isUuid)]);
  const actors = rows.flatMap(({ kind, uid }) => (kind === 'run' ? [] : [{ kind, uid }]));
  const profileOf = await readProfiles(tx, teamId, actors);
  return new Map(
    rows.map(({ id, kind, uid, mode }) => {
      const name = kind === 'run' ? undefined : profileOf({ kind, uid }).display_name;
      return [id, { by: { type: kind, uid, ...(name === undefined ? {} : { display_name: name }) }, mode }];
    }),
  );
}

const readLastTaken = defineStatement({
  name: 'read_last_taken_followup',
  text: `
    SELECT f.id FROM followups f JOIN executions e ON e.id = f.execution_id
    WHERE f.run_id = $1 AND f.execution_id = $2 AND (e.continues IS NOT NULL OR f.taken_at >= e.started_at)
    ORDER BY f.taken_at DESC, f.position DESC LIMIT 1`,
  row: { id: uuid },
});

/**
 * Returns the id of the follow-up with which the present turn of the execution begins; undefined if it begins with the prompt of the run, to
 * which follow-ups may have been added.
 */
export async function findFollowupOfTurn(tx: Queryable, { runId, executionId }: Target): Promise<string | undefined> {
  return (await tx.query(readLastTaken, [runId, executionId]))[0]?.id;
}
