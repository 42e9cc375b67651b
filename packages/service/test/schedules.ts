/** Test support: creates schedules, makes them due, and reads their fires. */
import { randomUUIDv7 } from 'node:crypto';
import type { ScheduledAgentItem, ScheduleFire } from '@runyard/contract/schedules/schedules';
import type { TestService } from './service.ts';

export const scheduleBase = '/agent/schedules';

/** A valid request to create a schedule, which needs nothing else in the team. */
export const aSchedule = { name: 'Nightly', cron_schedule: '0 3 * * *', prompt: 'Tidy up.', enabled: true };

/** The schedules that `insert` writes for a team, without the API. */
export interface ScheduleRows {
  readonly teamId: string;
  readonly count: number;
  /** How many seconds ago the first schedule became due. Negative: how many seconds until it is due. */
  readonly dueSeconds?: number;
  /** The times of the schedules are spread evenly over this many seconds. */
  readonly spreadSeconds?: number;
  /** `@every` in seconds. */
  readonly everySeconds?: number;
}

/** One statement inserts at most this many rows, because each row also writes a revision, and a statement may take at most 30 s. */
const perStatement = 2_000;

export function testSchedules({ deps, request }: Pick<TestService, 'deps' | 'request'>) {
  const { db } = deps;
  return {
    create: async (more: object = {}, key?: string): Promise<ScheduledAgentItem> => {
      const answer = await request<ScheduledAgentItem>('POST', scheduleBase, {
        body: { ...aSchedule, ...more },
        ...(key === undefined ? {} : { key }),
      });
      if (answer.status !== 201) throw new Error(answer.text);
      return answer.body;
    },
    read: async (id: string) => (await request<ScheduledAgentItem>('GET', `${scheduleBase}/${id}`)).body,
    /** Fires, newest first. */
    fires: async (id: string) =>
      (await request<{ fires: ScheduleFire[] }>('GET', `${scheduleBase}/${id}/history?limit=100`)).body.fires,
    /** Changes the schedule so that it was due this number of seconds ago. */
    makeDue: async (id: string, seconds = 1) => {
      await db.query(
        `UPDATE schedules SET next_run_at = date_trunc('milliseconds', now()) - $2 * interval '1 second' WHERE id = $1`,
        [id, seconds],
      );
    },
    /** Inserts schedules that are due or will be due. Their last editor is the first person of the team. */
    insert: async ({ teamId, count, dueSeconds = 1, spreadSeconds = 0, everySeconds = 86_400 }: ScheduleRows) => {
      const rows = Array.from({ length: count }, (_, n) => ({ id: randomUUIDv7(), n }));
      for (let from = 0; from < count; from += perStatement)
        await db.query(
          `INSERT INTO schedules (id, team_id, name, cron_schedule, timezone, anchor_at, prompt, overlap, enabled, next_run_at,
             creator_kind, creator_uid, editor_kind, editor_uid)
           SELECT i.id, $2, 'S ' || i.n, '@every ' || $5::int || 's', 'UTC', due.at - $5::int * interval '1 second', 'Do it.', 'allow', true, due.at,
             'user', u.uid, 'user', u.uid
           FROM jsonb_to_recordset($1::jsonb) AS i(id uuid, n integer),
             LATERAL (SELECT date_trunc('milliseconds', now()) - $3::float8 * interval '1 second'
               + i.n * ($4::float8 / ${count}) * interval '1 second' AS at) due,
             (SELECT u.uid FROM users u JOIN team_members m ON m.user_id = u.id WHERE m.team_id = $2 ORDER BY u.number LIMIT 1) u`,
          [JSON.stringify(rows.slice(from, from + perStatement)), teamId, dueSeconds, spreadSeconds, everySeconds],
        );
      return rows.map(({ id }) => id);
    },
  };
}
