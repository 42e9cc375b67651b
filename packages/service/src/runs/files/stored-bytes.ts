import type { UsageReport } from '@runyard/contract/budgets';
import type { Settings } from '@runyard/contract/settings';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, nullable, numeric, uuid } from '../../platform/store/database/statement.ts';

/** SQL: the bytes of the artifacts and kept workspaces of a team. All other files of a run have small limits of their own. */
export const bytesOfTeam = (teamId: string): string => `(
  (SELECT coalesce(sum(size_bytes), 0) FROM artifacts WHERE team_id = ${teamId} AND size_bytes IS NOT NULL)
  + (SELECT coalesce(sum(workspace_bytes), 0) FROM executions WHERE team_id = ${teamId} AND workspace_bytes IS NOT NULL))`;

const readStored = defineStatement({
  name: 'read_stored_bytes_of_team',
  text: `SELECT ${bytesOfTeam('$1')} AS stored`,
  row: { stored: numeric },
});

/** Returns the bytes of the team's artifacts and kept workspaces, and their limit. */
export async function storageUseOf(
  { db, settings }: { readonly db: Queryable; readonly settings: Pick<Settings, 'RUNYARD_TEAM_STORAGE_MB'> },
  teamId: string,
): Promise<UsageReport['storage']> {
  const [row] = await db.query(readStored, [teamId]);
  return { bytes: Number(row?.stored ?? 0), max_bytes: settings.RUNYARD_TEAM_STORAGE_MB * 1024 * 1024 };
}

const readRoom = defineStatement({
  name: 'read_room_of_workspace',
  text: `
    SELECT e.team_id, e.workspace_bytes AS own, ${bytesOfTeam('e.team_id')} AS stored FROM executions e WHERE e.id = $1`,
  row: { team_id: uuid, own: nullable(integer), stored: numeric },
});

/** Returns how many bytes an archive of the execution may have, which replaces the earlier one. `most`: bytes of the team together. */
export async function roomOfWorkspace(db: Queryable, executionId: string, most: number): Promise<number> {
  const [row] = await db.query(readRoom, [executionId]);
  return row === undefined ? most : Math.max(0, most - Number(row.stored) + (row.own ?? 0));
}
