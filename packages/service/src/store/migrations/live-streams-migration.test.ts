import { randomUUIDv7 } from 'node:crypto';
import { expect, test } from 'vitest';
import { createEmptyDatabase } from '../../../test/database.ts';
import { ensureEpoch } from '../../live/epoch.ts';
import { openDatabase } from '../database/database.ts';
import { silentLog } from '../database/log.ts';
import { migrateDatabase } from './migrate.ts';

test('events of an older Runyard keep their order, are no news of a team stream, and those that are deleted are known', async () => {
  const { url, drop } = await createEmptyDatabase();
  const db = await openDatabase({ address: { connectionString: url }, maxConnections: 2, log: silentLog });
  try {
    await migrateDatabase(db, { upTo: 7 });
    const teamId = randomUUIDv7();
    const [whole, partly] = [randomUUIDv7(), randomUUIDv7()];
    await db.query(`INSERT INTO teams (id, uid, name) VALUES ($1, 'u', 'T')`, [teamId]);
    for (const id of [whole, partly]) {
      await db.query(
        `INSERT INTO runs (id, team_id, state, title, prompt, model_id, harness, source, creator_kind, creator_uid, executor_kind,
           executor_uid, conversation_id, current_execution_id, event_seq, detail_deleted_at)
         VALUES ($1, $2, 'SUCCEEDED', '', '', 'm', 'oz', 'API', 'user', 'u', 'user', 'u', $1, $1, 5, $3)`,
        [id, teamId, id === partly ? '2026-01-01' : null],
      );
      await db.query(`INSERT INTO run_events (run_id, seq, state) SELECT $1, n, 'QUEUED' FROM unnest($2::int[]) AS n`, [
        id,
        id === partly ? [1, 2, 5] : [1, 2, 3, 4, 5],
      ]);
    }
    await migrateDatabase(db);
    const runs = await db.query('SELECT id, events_kept_after FROM runs ORDER BY events_kept_after');
    expect(runs).toEqual([
      { id: whole, events_kept_after: 0 },
      { id: partly, events_kept_after: 4 },
    ]);
    await ensureEpoch(db);
    expect(await db.query(`SELECT DISTINCT xact::text AS xact FROM run_events`)).toEqual([{ xact: '0' }]);
    await db.query(`INSERT INTO run_events (run_id, seq, state) VALUES ($1, 6, 'QUEUED')`, [whole]);
    expect(await db.query(`SELECT run_id FROM run_events WHERE xact > '0'`)).toEqual([{ run_id: whole }]);
  } finally {
    await db.close();
    await drop();
  }
});
