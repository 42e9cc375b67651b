import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement } from '../../../platform/store/database/statement.ts';
import { isValidKey } from './key.ts';
import type { Principal } from './principal.ts';

const readHasOperatorKey = defineStatement({
  name: 'read_whether_person_has_operator_key',
  text: `
    SELECT EXISTS (SELECT FROM users u JOIN team_members m ON m.user_id = u.id
      JOIN api_keys k ON k.team_id = m.team_id AND k.user_id = u.id
      WHERE u.uid = $1 AND k.is_operator AND ${isValidKey('k')}) AS found`,
  row: { found: boolean },
});

/**
 * Returns whether the caller may see data of the whole installation. The caller needs the operator's key, or a browser session of the
 * person to whom this key belongs. A session may not change these data: see `AllowKeys.operator`.
 */
export async function isOperatorHere(
  db: Queryable,
  { kind, isOperator, creator }: Pick<Principal, 'kind' | 'isOperator' | 'creator'>,
): Promise<boolean> {
  if (isOperator || kind !== 'session') return isOperator;
  const [row] = await db.query(readHasOperatorKey, [creator.uid]);
  return row?.found === true;
}

const readIsOperatorTeam = defineStatement({
  name: 'read_whether_team_has_operator_key',
  text: `SELECT EXISTS (SELECT FROM api_keys k WHERE k.team_id = $1 AND k.is_operator AND ${isValidKey('k')}) AS found`,
  row: { found: boolean },
});

/** Returns whether the caller may read about the whole installation: owners of the team of the operator's key may. */
export async function mayReadInstallation(
  db: Queryable,
  { kind, role, teamId }: Pick<Principal, 'kind' | 'role' | 'teamId'>,
): Promise<boolean> {
  if (role !== 'owner' || (kind !== 'user' && kind !== 'session')) return false;
  const [row] = await db.query(readIsOperatorTeam, [teamId]);
  return row?.found === true;
}
