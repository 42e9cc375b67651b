/** Decides about rights to what the gateway adds to the requests of a run. */
import { batched } from '../../../platform/store/database/batched.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, integer, text } from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../actor.ts';
import { isSuspended } from '../keys/key.ts';
import type { RunContent } from './content.ts';
import { decidePersonalCredentials, decideRight, principalsOf, type RightDecision } from './run-rights.ts';

/**
 * Service accounts without a key count too, because their texts keep their rights. Unlike this statement, `mayStartRunsOf` asks whether a
 * principal can act now. Without `OFFSET 0`, the planner would read whole tables to answer all questions at once.
 */
const readRows = defineStatement({
  name: 'read_staff_of_teams',
  text: `
    SELECT p.question, p.kind, p.uid FROM unnest($1::int[], $2::uuid[], $3::text[], $4::text[], $5::text[]) AS p (question, team_id, kind, uid, executor_uid)
    WHERE CASE WHEN p.kind = 'user' THEN EXISTS (
        SELECT FROM team_members m JOIN users u ON u.id = m.user_id
        WHERE m.team_id = p.team_id AND u.uid = p.uid AND m.role <> 'viewer' AND (u.uid <> p.executor_uid OR NOT ${isSuspended('u.id')}) OFFSET 0)
      ELSE EXISTS (SELECT FROM agent_identities i WHERE i.team_id = p.team_id AND i.uid = p.uid OFFSET 0)
        OR EXISTS (SELECT FROM api_keys k WHERE k.team_id = p.team_id AND k.kind = 'agent' AND coalesce(k.agent_uid, k.id::text) = p.uid OFFSET 0) END`,
  row: { question: integer, kind: text<RunActor['kind']>(), uid: text() },
});

/** A question about principals of a team, and its answer: the principals of the staff, each as kind and uid. */
interface StaffQuestion {
  readonly teamId: string;
  readonly principals: readonly RunActor[];
  readonly executor?: RunActor | undefined;
  readonly staff: Set<string>;
}

/** Answers all questions that arrive together with one statement, because each create of a run asks one. */
const answer = batched(100, async (db: Queryable, questions: readonly StaffQuestion[]) => {
  const asked = questions.flatMap(({ teamId, principals, executor }, question) =>
    principals.map(({ kind, uid }) => ({ question, teamId, kind, uid, executorUid: executor?.uid ?? '' })),
  );
  const rows = await db.query(readRows, [
    asked.map(({ question }) => question),
    asked.map(({ teamId }) => teamId),
    asked.map(({ kind }) => kind),
    asked.map(({ uid }) => uid),
    asked.map(({ executorUid }) => executorUid),
  ]);
  for (const { question, kind, uid } of rows) questions[question]?.staff.add(`${kind} ${uid}`);
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
  const staff = new Set<string>();
  await answer(db, { teamId, principals, executor, staff });
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
