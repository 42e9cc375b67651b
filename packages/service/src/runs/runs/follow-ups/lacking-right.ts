/**
 * Decides whether an author may send a follow-up, an approval or an answer to a run, because the sandbox may contain secrets and private
 * repositories that the author must not see.
 */
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, json, nullable, uuid } from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import { isSameActor, type RunContent } from '../../../team/access/contents/content.ts';
import { readStaff } from '../../../team/access/contents/gateway-rights.ts';
import { configuringKinds, isInSandbox, type RunRights } from '../../../team/access/contents/run-rights.ts';
import type { CodeHosts } from '../../../team/code-hosts/code-hosts.ts';
import { findLacking } from '../../../team/stored-secrets/find-usable.ts';
import { readGrantedNames } from '../../../team/stored-secrets/run-secrets.ts';
import { readPersonalClones } from '../../executions/run-tokens/personal-clones.ts';
import { readRepositories } from '../read/repositories.ts';

const readRun = defineStatement({
  name: 'read_rights_for_followup',
  text: `
    SELECT id, current_execution_id AS execution_id, config, contents, rights, jsonb_build_object('kind', executor_kind, 'uid', executor_uid) AS executor,
      jsonb_array_length(coalesce(nullif(config->'secrets', 'null'), '[]')) > 0 AS names_secrets
    FROM runs JOIN run_requests ON run_id = id WHERE id = $1 AND team_id = $2`,
  row: {
    id: uuid,
    execution_id: uuid,
    config: json<AmbientAgentConfig>(),
    contents: json<RunContent[]>(),
    /** NULL if the run was created before runs had rights. */
    rights: nullable(json<RunRights>()),
    executor: json<RunActor>(),
    names_secrets: boolean,
  },
});

/**
 * Returns whether the executor allowed follow-ups of the whole team. The setting `followups_from` does not count if it may come from
 * content that the executor did not accept.
 */
export const isOpenToTeam = ({ followups_from }: AmbientAgentConfig, contents: readonly RunContent[]): boolean =>
  followups_from === 'team' && !contents.some(({ kind, accepted }) => !accepted && configuringKinds.includes(kind));

/**
 * Returns the name of a secret that the author may not use, and that the run's sandbox or saved files contain or may get. Returns null if
 * there is no such secret, or if the executor allowed follow-ups of the whole team.
 */
export async function findLackingRight(
  db: Queryable,
  teamId: string,
  runId: string,
  author: RunActor,
): Promise<string | null> {
  const [run] = await db.query(readRun, [runId, teamId]);
  if (!run || isSameActor(author, run.executor) || isOpenToTeam(run.config, run.contents)) return null;
  if (run.rights) {
    const inSandbox = run.rights.secrets.filter(isInSandbox);
    return (await findLacking(db, { teamId, actor: author }, inSandbox))[0]?.name ?? null;
  }
  // For a run from before runs had rights, the owners of its secrets were not stored, so every secret of the run counts.
  const [granted] = await readGrantedNames(db, run.id);
  return granted ?? (run.names_secrets ? (run.config.secrets?.[0]?.name ?? null) : null);
}

/**
 * Returns the name of a repository in the run's workspace that the author cannot read, as `owner/repo`. Asks the code host only about
 * repositories that the run read with a personal credential of its executor, because everybody who works in the team may use the team's
 * credentials. Returns null if there is no such repository, or if the executor allowed follow-ups of the whole team. Is not for
 * transactions: the code host may take 10 s for each kind of credential.
 */
export async function findLackingRepository(
  { db, codeHosts }: { readonly db: Queryable; readonly codeHosts: Pick<CodeHosts, 'findUnreadable'> },
  teamId: string,
  runId: string,
  author: RunActor | null,
): Promise<string | null> {
  const [run] = await db.query(readRun, [runId, teamId]);
  if (!run || isOpenToTeam(run.config, run.contents)) return null;
  if (author !== null && isSameActor(author, run.executor)) return null;
  const clones = await readPersonalClones(db, run.id);
  const isOfTeam = author !== null && (await readStaff(db, teamId, [author]))(author);
  const mayHoldMore = run.rights?.team_credentials !== false;
  const [first] = isOfTeam
    ? await codeHosts.findUnreadable({ teamId, actor: author }, clones)
    : [...clones, ...(mayHoldMore ? await readRepositories(db, run.execution_id) : [])];
  return first === undefined ? null : `${first.owner}/${first.repo}`;
}
