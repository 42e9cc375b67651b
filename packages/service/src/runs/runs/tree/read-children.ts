import type { ArtifactItem } from '@runyard/contract/runs/artifacts';
import type { ChildRun } from '@runyard/contract/runs/child-runs';
import type { RunState } from '@runyard/contract/runs/states';
import { firstPart } from '@runyard/contract/wire/shorten';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, nullable, text, timestamp, uuid } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { readArtifactItems } from '../../files/artifacts/read.ts';

/** Characters of a child's summary or status message that its parent gets. */
const maxSummaryLength = 16 * 1024;

const readRows = defineStatement({
  name: 'read_child_runs',
  text: `
    SELECT c.id, c.title, c.state, c.created_at, c.status_message,
      CASE WHEN c.state IN ('SUCCEEDED', 'INPROGRESS', 'QUEUED') THEN
        (SELECT v.payload->>'summary' FROM run_events v WHERE v.run_id = c.id AND v.event_type = 'oz_run_done' ORDER BY v.seq DESC LIMIT 1)
      END AS summary
    FROM runs c WHERE c.parent_run_id = $1 AND ($2::uuid[] IS NULL OR c.id = ANY($2::uuid[]))
    ORDER BY c.created_at, c.id LIMIT 500`,
  row: {
    id: uuid,
    title: text(),
    state: text<RunState>(),
    created_at: timestamp,
    status_message: nullable(text()),
    summary: nullable(text()),
  },
});

const readStates = defineStatement({
  name: 'read_states_of_child_runs',
  text: 'SELECT id, state FROM runs WHERE parent_run_id = $1 AND ($2::uuid[] IS NULL OR id = ANY($2::uuid[])) ORDER BY created_at, id LIMIT 500',
  row: { id: uuid, state: text<RunState>() },
});

/** Reads the states of the children of the run: of those in `runIds`, else of all. Null: one of the ids is no child. */
export async function readChildStates(
  db: Queryable,
  parentRunId: string,
  runIds: readonly string[] | undefined,
): Promise<{ readonly id: string; readonly state: RunState }[] | null> {
  if (runIds?.some((id) => !isUuid(id))) return null;
  const rows = await db.query(readStates, [parentRunId, runIds ?? null]);
  return runIds && rows.length !== new Set(runIds.map((id) => id.toLowerCase())).size ? null : rows;
}

/** Reads the children of the run, oldest first: those in `runIds`, else all. */
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
    artifacts: (artifacts.get(row.id) ?? []).map(artifactSummary),
  }));
}

/** Returns the artifact with the members that an agent needs to name it. */
function artifactSummary({ artifact_type, data }: ArtifactItem): ChildRun['artifacts'][number] {
  const members = data as Record<string, unknown>;
  const text = (name: string) => (typeof members[name] === 'string' ? firstPart(members[name], 500) : undefined);
  const [uid, title, url] = [text('artifact_uid'), text('title') ?? text('filename'), text('url')];
  return {
    artifact_type,
    ...(uid ? { artifact_uid: uid } : {}),
    ...(title ? { title } : {}),
    ...(url ? { url } : {}),
  };
}
