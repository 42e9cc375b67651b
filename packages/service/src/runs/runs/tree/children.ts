/** Reads, awaits and cancels the children of a run for its agent. */

import type { ArtifactItem } from '@runyard/contract/runs/artifacts';
import type { ChildRun, OwnArtifacts } from '@runyard/contract/runs/child-runs';
import { isSettled } from '@runyard/contract/runs/run-states';
import type { RunState } from '@runyard/contract/runs/states';
import { firstPart } from '@runyard/contract/wire/shorten';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  json,
  nullable,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { cancelRun } from '../../executions/cancel/cancel.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { markAwaiting, unmarkAwaiting } from '../../executions/queue/awaiting.ts';
import type { Attempt } from '../../executions/run-tokens/attempt.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { waitForRuns } from '../../executions/wait-for-runs.ts';
import { readArtifactItems } from '../../files/artifacts/read.ts';

/** Maximum number of characters of a child's summary or status message that the parent's agent gets. */
const maxSummaryLength = 16 * 1024;

const readRows = defineStatement({
  name: 'read_child_runs',
  text: `
    SELECT c.id, c.title, c.state, c.created_at, c.status_message,
      CASE WHEN c.state IN ('SUCCEEDED', 'INPROGRESS', 'QUEUED') THEN
        (SELECT v.payload->>'summary' FROM run_events v WHERE v.run_id = c.id AND v.event_type = 'oz_run_done' ORDER BY v.seq DESC LIMIT 1)
      END AS summary, x.result, x.result IS NOT NULL AS has_result, x.artifact_id AS result_artifact_id
    FROM runs c LEFT JOIN run_results x ON x.run_id = c.id WHERE c.parent_run_id = $1 AND ($2::uuid[] IS NULL OR c.id = ANY($2::uuid[]))
    ORDER BY c.created_at, c.id LIMIT 500`,
  row: {
    id: uuid,
    title: text(),
    state: text<RunState>(),
    created_at: timestamp,
    status_message: nullable(text()),
    summary: nullable(text()),
    result: nullable(json<unknown>()),
    has_result: boolean,
    result_artifact_id: nullable(uuid),
  },
});

const readStates = defineStatement({
  name: 'read_states_of_child_runs',
  text: 'SELECT id, state FROM runs WHERE parent_run_id = $1 AND ($2::uuid[] IS NULL OR id = ANY($2::uuid[])) ORDER BY created_at, id LIMIT 500',
  row: { id: uuid, state: text<RunState>() },
});

/**
 * Reads the states of the children in `runIds`, or of all children of the run if it is absent. Returns null if one of the ids is not the id
 * of a child.
 */
async function readChildStates(
  db: Queryable,
  parentRunId: string,
  runIds: readonly string[] | undefined,
): Promise<{ readonly id: string; readonly state: RunState }[] | null> {
  if (runIds?.some((id) => !isUuid(id))) return null;
  const rows = await db.query(readStates, [parentRunId, runIds ?? null]);
  return runIds && rows.length !== new Set(runIds.map((id) => id.toLowerCase())).size ? null : rows;
}

/** Reads the children of the run, oldest first: the children in `runIds`, or all if it is absent. */
export async function readChildren(
  db: Queryable,
  parentRunId: string,
  runIds: readonly string[] | undefined,
): Promise<ChildRun[]> {
  const rows = await db.query(readRows, [parentRunId, runIds ?? null]);
  const artifacts = await readArtifactItems(
    db,
    rows.map(({ id }) => id),
  );
  return rows.map((row) => ({
    run_id: row.id,
    title: row.title,
    state: row.state,
    created_at: row.created_at,
    ...(row.status_message ? { message: firstPart(row.status_message, maxSummaryLength) } : {}),
    ...(row.summary ? { summary: firstPart(row.summary, maxSummaryLength) } : {}),
    ...(row.has_result ? { result: row.result } : {}),
    ...(row.result_artifact_id === null ? {} : { result_artifact_uid: row.result_artifact_id }),
    artifacts: (artifacts.get(row.id) ?? []).map(artifactSummary),
  }));
}

/** Reads the artifacts of a run, oldest first. */
export async function readOwnArtifacts(db: Queryable, runId: string): Promise<OwnArtifacts> {
  const artifacts = await readArtifactItems(db, [runId]);
  return { artifacts: (artifacts.get(runId) ?? []).map(artifactSummary) };
}

/** Returns those members of the artifact that an agent needs to refer to it. */
function artifactSummary({ artifact_type, data }: ArtifactItem): ChildRun['artifacts'][number] {
  const members = data as Record<string, unknown>;
  const text = (name: string) => (typeof members[name] === 'string' ? firstPart(members[name], 500) : undefined);
  const [uid, file, url] = [text('artifact_uid'), text('filename'), text('url')];
  const title = text('title') ?? file;
  return {
    artifact_type,
    ...(uid ? { artifact_uid: uid } : {}),
    ...(title ? { title } : {}),
    ...(file ? { file_name: file } : {}),
    ...(url ? { url } : {}),
  };
}

/** Maximum time between two calls of an agent that waits longer than one call takes. After this time the execution uses a slot again. */
const betweenCallsMs = 10_000;

interface Wait {
  /** Ids of the children to wait for; absent: all children. */
  readonly runIds?: readonly string[] | undefined;
  readonly until: 'all' | 'any';
  readonly waitMs: number;
  /** Is aborted when the connection of the caller closes. */
  readonly signal: AbortSignal;
}

/**
 * Waits until children of the session's run have ended or are BLOCKED (`settled`), or until `waitMs` milliseconds have passed (`waiting`).
 * During the wait, the session's execution uses no slot if one of these children can use the slot. `not_found`: one of the ids is not the
 * id of a child of the run.
 */
export async function awaitChildren(
  deps: ExecutionDeps,
  session: Attempt,
  wait: Wait,
): Promise<'settled' | 'waiting' | 'not_found'> {
  const deadline = performance.now() + wait.waitMs;
  let childIds: readonly string[] = [];
  let unsettledIds: readonly string[] = [];
  let isMarked = false;
  const waiting = {
    runIds: () => childIds,
    waitMs: wait.waitMs,
    signal: wait.signal,
    beforePause: async () => {
      isMarked ||= await markAwaiting(deps.db, session, wait.waitMs + betweenCallsMs, unsettledIds);
    },
  };
  try {
    const outcome = await waitForRuns(deps.notices, waiting, async () => {
      const children = await readChildStates(deps.db, session.runId, wait.runIds);
      if (!children) return 'not_found';
      childIds = children.map(({ id }) => id);
      unsettledIds = children.filter(({ state }) => !isSettled(state)).map(({ id }) => id);
      const settled = children.length - unsettledIds.length;
      return settled === children.length || (wait.until === 'any' && settled > 0) ? 'settled' : undefined;
    });
    return outcome ?? 'waiting';
  } finally {
    // If the whole time has passed, the agent usually calls again. So keep the execution marked as waiting for the time between two calls.
    if (isMarked && (wait.signal.aborted || performance.now() < deadline)) await unmarkAwaiting(deps.db, session);
  }
}

/**
 * Maximum time to wait while the child is PENDING. It is shorter than the 30 s for which a run may be PENDING, so that the agent gets an
 * answer earlier.
 */
const pendingPatienceMs = 20_000;

/**
 * Cancels a child of the session's run and all descendants of the child. Waits while the child is PENDING. `not_found`: the run has no
 * child with this id. `pending`: the child is still PENDING.
 */
export async function cancelChild(
  deps: ExecutionDeps,
  session: RunSession,
  childRunId: string,
  signal: AbortSignal,
): Promise<'done' | 'not_found' | 'pending'> {
  const children = { runIds: [childRunId], until: 'all', waitMs: 0, signal } as const;
  if ((await awaitChildren(deps, session, children)) === 'not_found') return 'not_found';
  const wait = { runIds: () => [childRunId.toLowerCase()], waitMs: pendingPatienceMs, signal };
  const outcome = await waitForRuns(deps.notices, wait, async () => {
    const cancelled = await cancelRun(deps, childRunId, session);
    return cancelled === 'pending' ? undefined : cancelled;
  });
  return outcome === undefined ? 'pending' : 'done';
}
