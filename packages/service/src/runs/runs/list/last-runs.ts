/** Reads the last runs that used an environment or a skill. Routes of other folders use this. */
import type { RunState } from '@runyard/contract/runs/states';
import {
  boolean,
  defineStatement,
  nullable,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import type { ReadEnvironmentRuns } from '../../../team/environments/environments.ts';
import type { ReadLastRuns } from '../../../team/skills/list-agents.ts';

const readOfEnvironments = defineStatement({
  name: 'read_last_runs_of_environments',
  text: `
    SELECT e.uid, r.id, r.title, r.state, r.created_at, r.updated_at, r.started_at, r.last_started_at,
      r.state = 'FAILED' AND r.error_code IN ('environment_setup_failed', 'external_authentication_required') AS has_failed_setup
    FROM unnest($2::text[]) e(uid)
    CROSS JOIN LATERAL (
      SELECT *, max(started_at) OVER () AS last_started_at FROM runs WHERE facets @> ARRAY[run_facet($1, 'environment_id=' || e.uid)]
      ORDER BY created_at DESC, id DESC LIMIT 1
    ) r`,
  row: {
    uid: text(),
    id: uuid,
    title: text(),
    state: text<RunState>(),
    created_at: timestamp,
    updated_at: timestamp,
    started_at: nullable(timestamp),
    /** NULL if the run has no error code. */
    has_failed_setup: nullable(boolean),
    last_started_at: nullable(timestamp),
  },
});

const ofEnvironments: ReadEnvironmentRuns = async (db, teamId, uids) => {
  if (uids.length === 0) return new Map();
  const rows = await db.query(readOfEnvironments, [teamId, uids]);
  return new Map(
    rows.map(({ uid, has_failed_setup, last_started_at, started_at, ...run }) => [
      uid,
      {
        setup_failed: has_failed_setup ?? false,
        ...(last_started_at ? { last_task_run_timestamp: last_started_at } : {}),
        last_task_created: { ...run, ...(started_at ? { started_at } : {}) },
      },
    ]),
  );
};

const readOfSkills = defineStatement({
  name: 'read_last_runs_of_skills',
  text: `
    SELECT s.spec, r.created_at FROM unnest($2::text[]) s(spec)
      CROSS JOIN LATERAL (
        SELECT created_at FROM runs WHERE team_id = $1 AND skill_spec COLLATE "C" = s.spec ORDER BY id DESC LIMIT 1
      ) r`,
  row: { spec: text(), created_at: timestamp },
});

const ofSkills: ReadLastRuns = async (db, teamId, specs) => {
  const rows = specs.length === 0 ? [] : await db.query(readOfSkills, [teamId, specs]);
  return new Map(rows.map(({ spec, created_at }) => [spec, created_at]));
};

/** Reads the last run of each environment and of each skill of a team. */
export const lastRuns = { ofEnvironments, ofSkills };
