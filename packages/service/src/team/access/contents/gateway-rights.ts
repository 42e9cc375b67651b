/** Decides about rights to what the gateway adds to the requests of a run. */
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text } from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../actor.ts';
import { isSuspended } from '../keys/key.ts';
import type { RunContent } from './content.ts';
import { decidePersonalCredentials, decideRight, principalsOf, type RightDecision } from './run-rights.ts';

/**
 * Service accounts without a key count too, because their texts keep their rights. Unlike this statement, `mayStartRunsOf` asks whether a
 * principal can act now.
 */
const readRows = defineStatement({
  name: 'read_staff_of_team',
  text: `
    SELECT p.kind, p.uid FROM unnest($2::text[], $3::text[]) AS p (kind, uid)
    WHERE CASE WHEN p.kind = 'user' THEN EXISTS (
        SELECT FROM team_members m JOIN users u ON u.id = m.user_id
        WHERE m.team_id = $1 AND u.uid = p.uid AND m.role <> 'viewer' AND (u.uid <> $4 OR NOT ${isSuspended('u.id')}))
      ELSE EXISTS (SELECT FROM agent_identities i WHERE i.team_id = $1 AND i.uid = p.uid)
        OR EXISTS (SELECT FROM api_keys k WHERE k.team_id = $1 AND k.kind = 'agent' AND coalesce(k.agent_uid, k.id::text) = p.uid) END`,
  row: { kind: text<RunActor['kind']>(), uid: text() },
});

/**
 * Returns a function that says whether a principal has the rights that the whole team has: its members, except viewers, and its service
 * accounts. A suspended person has no rights as the executor, but the person's texts keep theirs.
 */
export async function readStaff(
  db: Queryable,
  teamId: string,
  principals: readonly RunActor[],
  executor?: RunActor,
): Promise<(principal: RunActor) => boolean> {
  const parameters = [
    teamId,
    principals.map(({ kind }) => kind),
    principals.map(({ uid }) => uid),
    executor?.uid ?? '',
  ];
  const rows = await db.query(readRows, parameters);
  const staff = new Set(rows.map(({ kind, uid }) => `${kind} ${uid}`));
  return ({ kind, uid }) => staff.has(`${kind} ${uid}`);
}

/** The decisions about rights to what the gateway adds to the requests of a run. */
export interface GatewayRights {
  /** The executor's personal credentials of code hosts. */
  readonly personal: RightDecision;
  /** The rights of the whole team: its credentials of code hosts, and the headers of its stored MCP servers. */
  readonly team: RightDecision;
}

/** Decides which rights behind the gateway a run has. Reads the present roles, because a right ends with the role. */
export async function decideGatewayRights(
  db: Queryable,
  {
    teamId,
    executor,
    contents,
  }: { readonly teamId: string; readonly executor: RunActor; readonly contents: readonly RunContent[] },
): Promise<GatewayRights> {
  const isOfTeam = await readStaff(db, teamId, principalsOf(executor, contents), executor);
  const personal = isOfTeam(executor) ? decidePersonalCredentials(executor, contents) : ({ kind: 'lacking' } as const);
  return { personal, team: decideRight(executor, contents, isOfTeam) };
}
