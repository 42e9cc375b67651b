import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement, json } from '../../../platform/store/database/statement.ts';
import { appendTimelineEvent } from '../../executions/timeline/timeline.ts';

/** Largest number of names that the timeline of a run has. */
const maxNames = 50;

/** Of two requests at once, only one notes each name. Returns the names that are new. */
const noteStatement = defineStatement({
  name: 'note_removed_members_of_run',
  text: `
    WITH run AS (SELECT id, removed_members FROM runs WHERE id = $1 FOR UPDATE
    ), fresh AS (
      SELECT array(SELECT DISTINCT name FROM unnest($2::text[]) AS name WHERE NOT name = ANY (removed_members) ORDER BY name) AS names
      FROM run WHERE cardinality(removed_members) < ${maxNames}
    )
    UPDATE runs SET removed_members = removed_members || fresh.names FROM fresh WHERE runs.id = $1 AND cardinality(fresh.names) > 0
    RETURNING to_jsonb(fresh.names) AS names`,
  row: { names: json<string[]>() },
});

export interface RemovedMembers {
  readonly runId: string;
  readonly executionId: string;
  readonly modelId: string;
  /** Names of members and tools, as the sandbox wrote them. */
  readonly names: readonly string[];
}

/** Returns a name for the timeline: only a plain one, because another could contain any text. */
const shown = (name: string): string => (/^[A-Za-z0-9_.:-]{1,80}$/.test(name) ? name : '(a name of other characters)');

/** Writes to the timeline of a run, once for each name, which parts of its requests to models the gateway removes. */
export async function noteRemovedMembers(
  db: Database,
  { runId, executionId, modelId, names }: RemovedMembers,
): Promise<void> {
  await db.transaction(async (tx) => {
    const [noted] = await tx.query(noteStatement, [runId, [...new Set(names.map(shown))].slice(0, maxNames)]);
    if (!noted) return;
    const payload = { model_id: modelId, removed: noted.names };
    await appendTimelineEvent(tx, { runId, executionId, type: 'model_request_changed', payload });
  });
}
