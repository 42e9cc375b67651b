import { usualLiveChildren } from '@runyard/contract/limits';
import { type AmbientAgentConfig, type ChildOverride, ChildRunsConfig } from '@runyard/contract/runs/config';
import type { RunMode } from '@runyard/contract/runs/message-origin';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, json, nullable, text } from '../../../platform/store/database/statement.ts';

// Check the type, because a stored configuration may be older than this member and have a value of another type.
const givenBy = (config: AmbientAgentConfig) => ChildRunsConfig.optional().safeParse(config.child_runs).data;

/** Returns the maximum number of live children of an agent's run; null if the agent may start none. */
export function childRunsOf(config: AmbientAgentConfig, mode: RunMode | null): { readonly max_live: number } | null {
  const given = givenBy(config);
  const isEnabled = given?.enabled ?? mode === 'orchestrate';
  return isEnabled ? { max_live: given?.max_live ?? usualLiveChildren } : null;
}

/** Returns the members of a configuration that child runs may set for themselves. */
export const overridesOf = (config: AmbientAgentConfig): readonly ChildOverride[] => givenBy(config)?.overrides ?? [];

/**
 * Returns `child_runs` of a child that may start runs itself: the value `own` of the child's request, limited by the permission of the
 * parent.
 */
export function narrowedChildRuns(
  parent: AmbientAgentConfig,
  own: ChildRunsConfig | undefined,
): Pick<ChildRunsConfig, 'enabled' | 'max_live' | 'overrides'> {
  const most = givenBy(parent)?.max_live ?? usualLiveChildren;
  const overrides = overridesOf(parent);
  return {
    enabled: true,
    max_live: Math.min(own?.max_live ?? most, most),
    overrides: overrides.filter((member) => own?.overrides?.includes(member) ?? true),
  };
}

/** Reads the configuration and the mode of the run. A follow-up that the execution took may have set the mode. */
const readConfig = defineStatement({
  name: 'read_child_runs_config',
  text: `
    SELECT q.config, CASE WHEN EXISTS (SELECT FROM followups f WHERE f.run_id = r.id AND f.execution_id = $2 AND f.mode = 'orchestrate')
      THEN 'orchestrate' ELSE r.mode END AS mode
    FROM runs r JOIN run_requests q ON q.run_id = r.id WHERE r.id = $1`,
  row: { config: json<AmbientAgentConfig>(), mode: nullable(text<RunMode>()) },
});

/** Reads the maximum number of live children of a session's run; null if its agent may start none. */
export async function readChildRunsPermission(
  db: Queryable,
  session: { readonly runId: string; readonly executionId: string },
): Promise<{ readonly max_live: number } | null> {
  const [run] = await db.query(readConfig, [session.runId, session.executionId]);
  return run ? childRunsOf(run.config, run.mode) : null;
}
