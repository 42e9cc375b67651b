import { withBases } from '@runyard/contract/agent/base-commits';
import type { EnvironmentRepository } from '@runyard/contract/environments/repositories';
import type { BaseCommit } from '@runyard/contract/runs/agent-events';
import type { Fault } from '../../../platform/fault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, json, nullable } from '../../../platform/store/database/statement.ts';

const readOwn = defineStatement({
  name: 'read_begin_of_run',
  text: `
    SELECT b.commits, EXISTS (SELECT FROM runs o WHERE o.conversation_id = r.conversation_id AND o.team_id = r.team_id AND o.created_at < r.created_at)
      OR EXISTS (SELECT FROM forked_runs f WHERE f.conversation_id = r.conversation_id) AS continues
    FROM runs r LEFT JOIN base_commits b ON b.run_id = r.id WHERE r.id = $1`,
  row: { commits: nullable(json<readonly BaseCommit[]>()), continues: boolean },
});

/** The commits and files with which a run began. */
export interface BeginOfRun {
  /** The commits that it has cloned; null: it has cloned none, or has not begun. */
  readonly commits: readonly BaseCommit[] | null;
  /** True: it has continued a conversation, so it began with the files of another run. */
  readonly continues: boolean;
}

/** Returns the commits and files with which a run began; undefined: there is no such run. */
export async function readBeginOfRun(db: Queryable, runId: string): Promise<BeginOfRun | undefined> {
  return (await db.query(readOwn, [runId]))[0];
}

/** Returns why no new run can begin as the run did that it is compared with; undefined: it can. */
export function faultOfComparison(
  { commits, continues }: BeginOfRun,
  repositories: readonly EnvironmentRepository[],
): Fault | undefined {
  const path = 'comparison';
  if (continues)
    return {
      path,
      message: 'the run continued a conversation, so it began with the files of an earlier run and not at a commit',
    };
  const unknown = withBases(repositories, commits ?? []).find(({ commit }) => commit === undefined);
  if (unknown === undefined) return undefined;
  const { owner, repo } = unknown.repository;
  return {
    path,
    message:
      commits === null
        ? 'the commits at which the run began are not recorded: its agent never started, or an older version of Runyard created the run'
        : `the run has not cloned the repository ${owner}/${repo}, which its environment names now`,
  };
}
