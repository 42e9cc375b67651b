import { maxMetadataKeys, maxRunDepth } from '@runyard/contract/limits';
import type { RunAgentRequest } from '@runyard/contract/runs/run-request';
import type { Fault } from '../../../platform/fault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, json, uuid, uuids } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';

/** The ancestors of a new run, and the metadata of the run merged with the metadata of its parent. */
export interface Lineage {
  readonly parentRunId?: string;
  /** Ids of the ancestors, the parent first and the root last. */
  readonly ancestorIds: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
}

const readParent = defineStatement({
  name: 'read_parent_of_new_run',
  text: 'SELECT id, ancestor_ids, metadata FROM runs WHERE id = $1 AND team_id = $2',
  row: { id: uuid, ancestor_ids: uuids, metadata: json<Record<string, string>>() },
});

/**
 * Reads the ancestors and the metadata for the parent that the request names. Adds a fault if the parent does not exist or a limit is
 * exceeded.
 */
export async function readLineage(
  db: Queryable,
  teamId: string,
  request: Pick<RunAgentRequest, 'parent_run_id' | 'metadata'>,
  faults: Fault[],
): Promise<Lineage> {
  const metadata = request.metadata ?? {};
  const parentRunId = request.parent_run_id;
  if (parentRunId === undefined) return { ancestorIds: [], metadata };
  const [parent] = isUuid(parentRunId) ? await db.query(readParent, [parentRunId, teamId]) : [];
  if (!parent) {
    faults.push({ path: 'parent_run_id', message: 'there is no such run' });
    return { ancestorIds: [], metadata };
  }
  const ancestorIds = [parent.id, ...parent.ancestor_ids];
  if (ancestorIds.length > maxRunDepth) {
    faults.push({ path: 'parent_run_id', message: `runs nest at most ${maxRunDepth} deep` });
  }
  const merged = { ...parent.metadata, ...metadata };
  if (Object.keys(merged).length > maxMetadataKeys) {
    faults.push({
      path: 'metadata',
      message: `has more than ${maxMetadataKeys} keys together with the parent's keys`,
    });
  }
  return { parentRunId: parent.id, ancestorIds, metadata: merged };
}
