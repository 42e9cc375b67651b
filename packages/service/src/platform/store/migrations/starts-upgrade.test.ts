import { randomUUIDv7 } from 'node:crypto';
import { expect, test } from 'vitest';
import { createEmptyDatabase } from '../../../../test/database.ts';
import { openDatabase } from '../database/database.ts';
import { silentLog } from '../database/log.ts';
import { migrateDatabase } from './migrate.ts';

const names = [
  'team',
  'schedule',
  'trigger',
  'skipped',
  'byHand',
  'fired',
  'waiting',
  'delivery',
  'kept',
  'gone',
  'run',
];
const ids = Object.fromEntries(names.map((name) => [name, randomUUIDv7()]));
const who = `'user', 'A', 'user', 'A'`;

/** The history of a schedule, and the starts of an automation by times and deliveries, before they have one table. */
const before = `
  INSERT INTO teams (id, uid, name) VALUES ('${ids.team}', 'T', 'Team');
  INSERT INTO factories (uid, team_id, name) VALUES ('F', '${ids.team}', 'F');
  INSERT INTO automations (uid, factory_uid, team_id, name, prompt, enabled, triggers, overlap, creator_kind, creator_uid, editor_kind, editor_uid)
    VALUES ('A', 'F', '${ids.team}', 'A', 'Do it.', true, '[]', 'queue', ${who});
  INSERT INTO schedules (id, team_id, automation_uid, trigger_name, name, cron_schedule, timezone, anchor_at, prompt, overlap, enabled,
      creator_kind, creator_uid, editor_kind, editor_uid)
    VALUES ('${ids.schedule}', '${ids.team}', NULL, NULL, 'S', '@daily', 'UTC', now(), 'a', 'cancel_previous', false, ${who}),
      ('${ids.trigger}', '${ids.team}', 'A', 'nightly', 'N', '@daily', 'UTC', now(), '', 'allow', false, ${who});
  INSERT INTO schedule_fires (id, schedule_id, due_at, outcome, run_id, reason, starter_kind, starter_uid, cancels_previous) VALUES
    ('${ids.skipped}', '${ids.schedule}', '2030-01-01Z', 'skipped', NULL, '1 of 1 runs are live', NULL, NULL, false),
    ('${ids.byHand}', '${ids.schedule}', NULL, 'started', '${ids.run}', NULL, 'user', 'A', true),
    ('${ids.fired}', '${ids.trigger}', '2030-01-01Z', 'started', '${ids.run}', NULL, NULL, NULL, false),
    ('${ids.waiting}', '${ids.trigger}', '2030-01-02Z', 'waiting', NULL, '1 of 1 runs are live', NULL, NULL, false);
  INSERT INTO automation_starts (id, automation_uid, webhook_uid, delivery_id, fire_id, lane, run_id, cancels_previous) VALUES
    (gen_random_uuid(), 'A', NULL, NULL, '${ids.fired}', NULL, '${ids.run}', true),
    (gen_random_uuid(), 'A', NULL, NULL, '${ids.waiting}', NULL, NULL, false),
    ('${ids.delivery}', 'A', 'W', '${ids.delivery}', NULL, 'lane', NULL, false),
    ('${ids.kept}', 'A', NULL, NULL, gen_random_uuid(), NULL, '${ids.run}', false),
    ('${ids.gone}', 'A', NULL, NULL, gen_random_uuid(), NULL, NULL, false);`;

test('moves the history of schedules and the starts of automations to one table, each fire to one row', async () => {
  const empty = await createEmptyDatabase();
  const db = await openDatabase({ address: { connectionString: empty.url }, maxConnections: 2, log: silentLog });
  try {
    await migrateDatabase(db, { upTo: 60 });
    await db.onOwnConnection((client) => client.query(before));
    expect(await migrateDatabase(db, { upTo: 61 })).toEqual(['0061_starts']);
    const none = {
      schedule_id: null,
      automation_uid: null,
      due_at: null,
      webhook_uid: null,
      delivery_id: null,
      lane: null,
    };
    const result = { run_id: null, reason: null, starter_uid: null, cancels_previous: false };
    const row = (id: string, more: object) => ({ id: ids[id], ...none, ...result, ...more });
    const reason = '1 of 1 runs are live';
    const started = { outcome: 'started', run_id: ids.run };
    expect(
      await db.query(
        `SELECT id, schedule_id, automation_uid, to_char(due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS due_at, webhook_uid, delivery_id, lane,
           outcome, run_id, reason, starter_uid, cancels_previous FROM starts ORDER BY id`,
      ),
    ).toEqual(
      [
        row('skipped', { schedule_id: ids.schedule, due_at: '2030-01-01', outcome: 'skipped', reason }),
        row('byHand', { schedule_id: ids.schedule, ...started, starter_uid: 'A', cancels_previous: true }),
        row('fired', {
          schedule_id: ids.trigger,
          automation_uid: 'A',
          due_at: '2030-01-01',
          ...started,
          cancels_previous: true,
        }),
        row('waiting', {
          schedule_id: ids.trigger,
          automation_uid: 'A',
          due_at: '2030-01-02',
          outcome: 'waiting',
          reason,
        }),
        row('delivery', {
          automation_uid: 'A',
          webhook_uid: 'W',
          delivery_id: ids.delivery,
          lane: 'lane',
          outcome: 'waiting',
        }),
        // Its history was deleted: the overlap policy still counts the run.
        row('kept', { automation_uid: 'A', ...started }),
      ].sort((a, b) => ((a.id ?? '') < (b.id ?? '') ? -1 : 1)),
    );
    const [age] = await db.query<{ seconds: number }>(
      'SELECT abs(extract(epoch FROM fired_at - now()))::float8 AS seconds FROM starts WHERE id = $1',
      [ids.delivery],
    );
    expect(age?.seconds).toBeLessThan(300);
  } finally {
    await db.close();
    await empty.drop();
  }
});
