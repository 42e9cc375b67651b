import type { Environment, EnvironmentConfig } from '@runyard/contract/environments';
import type { RunState } from '@runyard/contract/states';
import type { Queryable } from '../store/database.ts';
import { newUid } from '../teams/uid.ts';

interface EnvironmentRow {
  uid: string;
  config: EnvironmentConfig;
  updated_at: string;
  setup_failed: boolean;
  run_id: string | null;
  title: string | null;
  state: RunState | null;
  run_created_at: string | null;
  run_updated_at: string | null;
  run_started_at: string | null;
  last_started_at: string | null;
}

const select = `
  SELECT e.uid, e.config, e.updated_at, coalesce(r.has_failed_setup, false) AS setup_failed, r.id AS run_id, r.title, r.state, r.created_at AS run_created_at,
    r.updated_at AS run_updated_at, r.started_at AS run_started_at, s.last_started_at
  FROM environments e
  LEFT JOIN LATERAL (
    SELECT id, title, state, created_at, updated_at, started_at,
      state = 'FAILED' AND error_code = 'environment_setup_failed' AS has_failed_setup FROM runs
    WHERE team_id = e.team_id AND environment_id = e.uid ORDER BY created_at DESC, id DESC LIMIT 1
  ) r ON true
  LEFT JOIN LATERAL (
    SELECT max(started_at) AS last_started_at FROM runs WHERE team_id = e.team_id AND environment_id = e.uid
  ) s ON true`;

function toEnvironment(row: EnvironmentRow): Environment {
  const run =
    row.run_id && row.title !== null && row.state && row.run_created_at && row.run_updated_at
      ? {
          last_task_created: {
            id: row.run_id,
            title: row.title,
            state: row.state,
            created_at: row.run_created_at,
            updated_at: row.run_updated_at,
            ...(row.run_started_at ? { started_at: row.run_started_at } : {}),
          },
        }
      : {};
  return {
    uid: row.uid,
    config: row.config,
    last_updated: row.updated_at,
    setup_failed: row.setup_failed,
    ...(row.last_started_at ? { last_task_run_timestamp: row.last_started_at } : {}),
    ...run,
  };
}

/** `name`: by name, then uid; `last_updated`: most recent first. */
export async function listEnvironments(
  db: Queryable,
  teamId: string,
  sortBy: 'name' | 'last_updated',
): Promise<Environment[]> {
  const order = sortBy === 'name' ? `e.config->>'name' COLLATE "C", e.uid` : 'e.updated_at DESC, e.uid';
  const rows = await db.query<EnvironmentRow>(`${select} WHERE e.team_id = $1 ORDER BY ${order}`, [teamId]);
  return rows.map(toEnvironment);
}

/** Null: the team has no such environment. */
export async function readEnvironment(db: Queryable, teamId: string, uid: string): Promise<Environment | null> {
  const [row] = await db.query<EnvironmentRow>(`${select} WHERE e.team_id = $1 AND e.uid = $2`, [teamId, uid]);
  return row ? toEnvironment(row) : null;
}

export async function createEnvironment(
  db: Queryable,
  teamId: string,
  config: EnvironmentConfig,
): Promise<Environment> {
  const [row] = await db.query<{ uid: string; updated_at: string }>(
    'INSERT INTO environments (uid, team_id, config) VALUES ($1, $2, $3) RETURNING uid, updated_at',
    [newUid(), teamId, JSON.stringify(config)],
  );
  if (!row) throw new Error('the environment was not inserted');
  return { uid: row.uid, config, last_updated: row.updated_at, setup_failed: false };
}

/** Replaces the configuration. False: the team has no such environment. */
export async function updateEnvironment(
  db: Queryable,
  teamId: string,
  uid: string,
  config: EnvironmentConfig,
): Promise<boolean> {
  const rows = await db.query(
    'UPDATE environments SET config = $3, updated_at = now() WHERE team_id = $1 AND uid = $2 RETURNING uid',
    [teamId, uid, JSON.stringify(config)],
  );
  return rows.length > 0;
}

/** False: the team has no such environment. Runs that name it keep the name. */
export async function deleteEnvironment(db: Queryable, teamId: string, uid: string): Promise<boolean> {
  const rows = await db.query('DELETE FROM environments WHERE team_id = $1 AND uid = $2 RETURNING uid', [teamId, uid]);
  return rows.length > 0;
}

/** Whose environment it is, for a run of `teamId`. */
export async function findEnvironmentOwner(
  db: Queryable,
  teamId: string,
  uid: string,
): Promise<'own' | 'other_team' | 'unknown'> {
  const [row] = await db.query<{ own: boolean }>('SELECT team_id = $1 AS own FROM environments WHERE uid = $2', [
    teamId,
    uid,
  ]);
  if (!row) return 'unknown';
  return row.own ? 'own' : 'other_team';
}
