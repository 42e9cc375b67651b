/** Counts the starts of automations. */
import { maxCountedEvents, type TeamAutomation } from '@runyard/contract/automations/team-lists';
import type { FireOutcome } from '@runyard/contract/schedules/schedules';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, nullable, text, timestamp, uuid } from '../../platform/store/database/statement.ts';
import { idAt } from '../../platform/store/database/uuid.ts';

const outcomes = ['started', 'skipped', 'waiting', 'failed'] as const satisfies readonly FireOutcome[];

const readNumbers = defineStatement({
  name: 'read_start_numbers_of_automations',
  text: `
    SELECT a.uid, day.*, newest.* FROM unnest($1::text[]) AS a (uid)
      CROSS JOIN LATERAL (
        SELECT ${outcomes.map((outcome) => `count(*) FILTER (WHERE outcome = '${outcome}') AS ${outcome}`).join(', ')}
        FROM (SELECT outcome FROM starts s WHERE s.automation_uid = a.uid
            AND s.id >= ${idAt('24 hours')}
          ORDER BY s.id DESC LIMIT ${maxCountedEvents}) counted) day
      LEFT JOIN LATERAL (
        SELECT fired_at, outcome, reason, run_id, webhook_uid, delivery_id FROM starts s WHERE s.automation_uid = a.uid
        ORDER BY s.id DESC LIMIT 1) newest ON true`,
  row: {
    uid: text(),
    started: integer,
    skipped: integer,
    waiting: integer,
    failed: integer,
    fired_at: nullable(timestamp),
    outcome: nullable(text<FireOutcome>()),
    reason: nullable(text()),
    run_id: nullable(uuid),
    webhook_uid: nullable(text()),
    delivery_id: nullable(uuid),
  },
});

/** The number of starts of an automation in the last 24 hours, by outcome, and its newest start, which may be older. */
export type StartNumbers = Pick<TeamAutomation, 'last_24_hours' | 'last_fire'>;

/** Returns the numbers of each automation, by the UID of the automation. */
export async function readStartNumbers(
  db: Queryable,
  automationUids: readonly string[],
): Promise<ReadonlyMap<string, StartNumbers>> {
  const rows = await db.query(readNumbers, [automationUids]);
  return new Map(
    rows.map((row): [string, StartNumbers] => {
      const { uid, started, skipped, waiting, failed, fired_at, outcome, reason, run_id, webhook_uid, delivery_id } =
        row;
      const last_24_hours = { started, skipped, waiting, failed };
      if (fired_at === null || outcome === null) return [uid, { last_24_hours }];
      const last_fire = {
        fired_at,
        outcome,
        ...(reason === null ? {} : { reason }),
        ...(run_id === null ? {} : { run_id }),
        ...(webhook_uid === null ? {} : { webhook_uid }),
        ...(delivery_id === null ? {} : { delivery_id }),
      };
      return [uid, { last_24_hours, last_fire }];
    }),
  );
}
