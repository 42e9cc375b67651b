import type { EnvironmentConfig } from '@runyard/contract/environments/environments';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, json, nullable } from '../../../platform/store/database/statement.ts';
import { configOfRun } from '../../../team/environments/config-of-run.ts';
import { mayUse } from '../../../team/environments/may-use.ts';

/** Used where the run has no environment, or the environment sets no time. */
export const defaultRetentionMinutes = 10;

const readRetention = defineStatement({
  name: 'read_failure_retention',
  text: `
    SELECT ${configOfRun('env', 'r')}->'failure_session_retention_minutes' AS minutes
    FROM runs r JOIN environments env ON env.uid = r.environment_id AND ${mayUse('env', 'r')} WHERE r.id = $1`,
  row: { minutes: nullable(json<NonNullable<EnvironmentConfig['failure_session_retention_minutes']>>()) },
});

/** Returns how long the sandbox of a failed setup stays, in seconds. 0: it ends at once. */
export async function retentionSeconds(db: Queryable, runId: string): Promise<number> {
  const [row] = await db.query(readRetention, [runId]);
  return (row?.minutes ?? defaultRetentionMinutes) * 60;
}
