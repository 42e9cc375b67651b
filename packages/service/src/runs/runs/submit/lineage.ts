import { maxMetadataKeys, maxRunDepth } from '@runyard/contract/limits';
import type { BaseCommit } from '@runyard/contract/runs/agent-events';
import type { RunAgentRequest } from '@runyard/contract/runs/run-request';
import type { Fault } from '../../../platform/fault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, json, nullable, uuid, uuids } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';

/** The ancestors of a new run, and the metadata of the run merged with the metadata of its parent. */
export interface Lineage {
  readonly parentRunId?: string;
  /** Ids of the ancestors, the parent first and the root last. */
  readonly ancestorIds: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  /** The commits of the comparison to which the parent belongs; absent: it belongs to none. */
  readonly comparisonCommits?: readonly BaseCommit[];
}

const readParent = defineStatement({
  name: 'read_parent_of_new_run',
  text: `SELECT r.id, r.ancestor_ids, r.metadata, q.comparison_commits FROM runs r LEFT JOIN run_requests q ON q.run_id = r.id
    WHERE r.id = $1 AND r.team_id = $2`,
  row: {
    id: uuid,
    ancestor_ids: uuids,
    metadata: json<Record<string, string>>(),
    comparison_commits: nullable(json<readonly BaseCommit[]>()),
  },
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
  isFreshCheck: boolean,
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
  const { comparison_commits: commits } = parent;
  const above = { parentRunId: parent.id, ancestorIds, ...(commits ? { comparisonCommits: commits } : {}) };
  // A run at the greatest depth has checks too.
  if (ancestorIds.length > maxRunDepth + (isFreshCheck ? 1 : 0)) {
    faults.push({ path: 'parent_run_id', message: `runs nest at most ${maxRunDepth} deep` });
  }
  // A check gets no metadata of its parent, so that lists by metadata show only the checked run.
  if (isFreshCheck) return { ...above, metadata };
  const merged = { ...parent.metadata, ...metadata };
  if (Object.keys(merged).length > maxMetadataKeys) {
    faults.push({
      path: 'metadata',
      message: `has more than ${maxMetadataKeys} keys together with the parent's keys`,
    });
  }
  return { ...above, metadata: merged };
}
