/** Decides as whom the runs of a schedule or an automation act. */
import { isAtLeast } from '@runyard/contract/wire/access';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, text } from '../../platform/store/database/statement.ts';
import type { RunActor } from './actor.ts';
import type { Principal } from './keys/principal.ts';
import { mayStartRuns } from './may-start-runs.ts';

type Caller = Pick<Principal, 'teamId' | 'role' | 'creator'>;

const findIdentity = defineStatement({
  name: 'find_identity_as_executor',
  text: 'SELECT uid FROM agent_identities WHERE team_id = $1 AND uid = $2',
  row: { uid: text() },
});

/**
 * Returns the executor that a request names: the caller, or an agent identity that the caller may edit. Returns null for anybody else:
 * nobody can make another person the executor of a text. `named`: `me` or a uid; undefined if the request names no executor.
 */
export async function executorOfRequest(
  db: Queryable,
  { teamId, role, creator }: Caller,
  named: string | undefined,
): Promise<RunActor | undefined | null> {
  if (named === undefined) return undefined;
  if (named === 'me' || named === creator.uid) return creator;
  if (creator.kind !== 'user' || !isAtLeast(role, 'admin')) return null;
  const [identity] = await db.query(findIdentity, [teamId, named]);
  return identity ? { kind: 'service_account', uid: identity.uid } : null;
}

/** The detail of the refusal if `executorOfRequest` returns null. */
export const executorNotAllowed =
  'executor_uid: must be "me", your own uid, or the uid of an agent identity that you may edit. Nobody can let runs act as another person.';

/**
 * Returns the principal with whose rights a changed schedule or automation is checked: its executor, or the editor if the executor may not
 * start runs any more.
 */
export async function checkedExecutor(
  db: Queryable,
  teamId: string,
  stored: RunActor,
  editor: RunActor,
): Promise<RunActor> {
  const mayStart = await mayStartRuns(db, [{ teamId, ...stored }]);
  return mayStart({ teamId, ...stored }) ? stored : editor;
}
