import { type AmbientAgentConfig, type ChildOverride, ChildRunsConfig } from '@runyard/contract/config';
import type { RunMode } from '@runyard/contract/run-request';
import type { Queryable, Statement } from '../../store/database/database.ts';

/** Live children of a run where its configuration does not say. */
const defaultMaxLive = 8;

// Kept configurations may be older than the member.
const givenBy = (config: AmbientAgentConfig) => ChildRunsConfig.optional().safeParse(config.child_runs).data;

/** How many runs below it an agent may have at work at once; null: it may start none. */
export function childRunsOf(config: AmbientAgentConfig, mode: RunMode | null): { readonly max_live: number } | null {
  const given = givenBy(config);
  const isEnabled = given?.enabled ?? mode === 'orchestrate';
  return isEnabled ? { max_live: given?.max_live ?? defaultMaxLive } : null;
}

/** Members of their configuration that runs below this one may set for themselves. */
export const overridesOf = (config: AmbientAgentConfig): readonly ChildOverride[] => givenBy(config)?.overrides ?? [];

/** `child_runs` of a child that may start runs itself: never more than `parent` has. `own`: as the child's request says. */
export function narrowedChildRuns(
  parent: AmbientAgentConfig,
  own: ChildRunsConfig | undefined,
): Pick<ChildRunsConfig, 'enabled' | 'max_live' | 'overrides'> {
  const most = givenBy(parent)?.max_live ?? defaultMaxLive;
  const overrides = overridesOf(parent);
  return {
    enabled: true,
    max_live: Math.min(own?.max_live ?? most, most),
    overrides: overrides.filter((member) => own?.overrides?.includes(member) ?? true),
  };
}

/** A person may have set the mode with a follow-up that this execution plays, or has played. */
const readConfig: Statement = {
  name: 'read_child_runs_config',
  text: `
    SELECT r.config, CASE WHEN EXISTS (SELECT FROM followups f WHERE f.run_id = r.id AND f.execution_id = $2 AND f.mode = 'orchestrate')
      THEN 'orchestrate' ELSE r.mode END AS mode
    FROM runs r WHERE r.id = $1`,
};

/** What the agent of a session may do about runs below its own. */
export async function readPermission(
  db: Queryable,
  session: { readonly runId: string; readonly executionId: string },
): Promise<{ readonly max_live: number } | null> {
  const [run] = await db.query<{ config: AmbientAgentConfig; mode: RunMode | null }>(readConfig, [
    session.runId,
    session.executionId,
  ]);
  return run ? childRunsOf(run.config, run.mode) : null;
}
