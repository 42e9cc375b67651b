import { randomUUIDv7 } from 'node:crypto';
import pg from 'pg';
import { expect, test } from 'vitest';
import { createEmptyDatabase } from '../../../test/database.ts';
import { listRuns } from '../../runs/list/list.ts';
import { openDatabase } from '../database/database.ts';
import { silentLog } from '../database/log.ts';
import { migrateDatabase } from './migrate.ts';

const signer = { sign: () => 'signature', verify: () => true };

test('runs of an older Runyard are found by words, metadata, ancestors and artifacts', async () => {
  const { url, drop } = await createEmptyDatabase();
  const db = await openDatabase({ address: { connectionString: url }, maxConnections: 2, log: silentLog });
  try {
    await migrateDatabase(db, { upTo: 1 });
    const teamId = randomUUIDv7();
    const [root, child] = [randomUUIDv7(), randomUUIDv7()];
    await db.query(`INSERT INTO teams (id, uid, name) VALUES ($1, 'u', 'T')`, [teamId]);
    for (const [id, ancestors] of [
      [root, []],
      [child, [root]],
    ] as const) {
      await db.query(
        `INSERT INTO runs (id, team_id, state, title, prompt, model_id, harness, source, creator_kind, creator_uid, executor_kind,
           executor_uid, conversation_id, current_execution_id, metadata, ancestor_ids)
         VALUES ($1, $2, 'QUEUED', 'Old', $3, 'm', 'oz', 'API', 'user', 'u', 'user', 'u', $1, $1, '{"a": "b"}', $4)`,
        [id, teamId, id === child ? 'Find me' : '', ancestors],
      );
    }
    for (const _ of [1, 2]) {
      await db.query(
        `INSERT INTO artifacts (id, team_id, run_id, execution_id, conversation_id, artifact_type, data, is_ready)
         VALUES (gen_random_uuid(), $1, $2, $2, $2, 'PLAN', '{}', true)`,
        [teamId, child],
      );
    }
    await migrateDatabase(db);
    const found = async (filter: object) => {
      const query = { limit: 20, sort_by: 'created_at' as const, sort_order: 'asc' as const, ...filter };
      const outcome = await listRuns(db, signer, { teamId, teamUid: 'u', baseUrl: '' }, query);
      return outcome.kind === 'ok' ? outcome.page.runs.map((run) => run.run_id) : outcome;
    };
    expect(await found({ q: 'find' })).toEqual([child]);
    expect(await found({ metadata: { a: 'b' } })).toEqual([root, child]);
    expect(await found({ ancestor_run_id: root })).toEqual([child]);
    expect(await found({ artifact_type: 'PLAN' })).toEqual([child]);
  } finally {
    await db.close();
    await drop();
  }
});

test('a user who may do no more than create tables in the schema can migrate the database', async () => {
  const { url, drop } = await createEmptyDatabase();
  const role = `runyard_test_role_${process.pid}`;
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  const name = new URL(url).pathname.slice(1);
  const asRole = async () => {
    const db = await openDatabase({
      address: { connectionString: url },
      maxConnections: 1,
      log: silentLog,
    });
    // Every connection of this database begins as the role: servers of tests let it in without a password or not at all.
    try {
      return await migrateDatabase(db);
    } finally {
      await db.close();
    }
  };
  try {
    await admin.query(`CREATE ROLE ${role} NOSUPERUSER`);
    await admin.query(`GRANT ALL ON SCHEMA public TO ${role}`);
    await admin.query(`ALTER ROLE CURRENT_USER IN DATABASE ${name} SET role = '${role}'`);
    expect(await asRole()).toContain('0002_run_list');
  } finally {
    await admin.query(`ALTER ROLE CURRENT_USER IN DATABASE ${name} RESET role`);
    await admin.query(`DROP OWNED BY ${role} CASCADE`);
    await admin.query(`DROP ROLE ${role}`);
    await admin.end();
    await drop();
  }
});
