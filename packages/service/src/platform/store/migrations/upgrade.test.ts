import { randomUUIDv7 } from 'node:crypto';
import { expect, test } from 'vitest';
import { createEmptyDatabase } from '../../../../test/database.ts';
import { openDatabase } from '../database/database.ts';
import { silentLog } from '../database/log.ts';
import { migrateDatabase, readMigrations } from './migrate.ts';

const ids = Object.fromEntries(
  ['team', 'first', 'second', 'member', 'parent', 'child', 'schedule'].map((name) => [name, randomUUIDv7()]),
);

/** Punctuation separates words, even where PostgreSQL would read a URL, a path or a version as one word. */
const prompt = 'See https://a.example/b?c=d&e=%20 /usr/lib/x-y_z.so v1.2.3 me@b.example [x] «über»—naïve… a\\b 語';

/** Rows of an installation whose last migration is 0026. */
const before = `
  INSERT INTO teams (id, uid, name) VALUES ('${ids.team}', 'T', 'Team');
  INSERT INTO users (id, uid, display_name) VALUES ('${ids.first}', 'A', 'A'), ('${ids.second}', 'B', 'B'), ('${ids.member}', 'C', 'C');
  INSERT INTO team_members (team_id, user_id, role) VALUES
    ('${ids.team}', '${ids.second}', 'admin'), ('${ids.team}', '${ids.first}', 'admin'), ('${ids.team}', '${ids.member}', 'member');
  INSERT INTO runs (id, team_id, state, title, prompt, model_id, harness, source, creator_kind, creator_uid, executor_kind, executor_uid,
      parent_run_id, ancestor_ids, conversation_id, current_execution_id)
    VALUES
    ('${ids.parent}', '${ids.team}', 'SUCCEEDED', 'a', '${prompt}', 'm', 'oz', 'API', 'user', 'A', 'user', 'A', NULL, '{}', gen_random_uuid(), gen_random_uuid()),
    ('${ids.child}', '${ids.team}', 'SUCCEEDED', 'a', 'a', 'm', 'oz', 'API', 'user', 'A', 'user', 'A', '${ids.parent}', ARRAY['${ids.parent}'::uuid],
      gen_random_uuid(), gen_random_uuid());
  INSERT INTO executions (id, run_id, team_id, number, phase, pool, token_hash) VALUES
    (gen_random_uuid(), '${ids.parent}', '${ids.team}', 1, 'ended', '', 'token'), (gen_random_uuid(), '${ids.child}', '${ids.team}', 1, 'ended', '', NULL),
    (gen_random_uuid(), '${ids.child}', '${ids.team}', 2, 'ended', '', NULL);
  INSERT INTO run_search (run_id, team_id, updated_hour, parts)
    SELECT id, team_id, run_hour(updated_at), mark_parts(search_mark(team_id, search_week(updated_at)), search_parts(title, skill_spec, prompt)) FROM runs;
  INSERT INTO attachments (id, run_id, position, file_name, mime_type, size_bytes, sha256, blob_key)
    VALUES (gen_random_uuid(), '${ids.parent}', 0, 'a', 'text/plain', 1, 'x', 'a'), (gen_random_uuid(), '${ids.child}', 0, 'b', 'text/plain', 1, 'x', 'b');
  INSERT INTO model_requests (id, run_id, execution_id, model_id, provider, status, input_tokens, output_tokens, cache_read_tokens,
      cache_write_tokens, input_cost_usd, output_cost_usd, cache_read_cost_usd, cache_write_cost_usd, duration_ms)
    VALUES (gen_random_uuid(), '${ids.parent}', gen_random_uuid(), 'm', 'p', 200, 1, 1, 0, 0, 1, 2, 0, 0, 1),
      (gen_random_uuid(), '${ids.child}', gen_random_uuid(), 'm', 'p', 200, 1, 1, 0, 0, 0.5, 0, 0, 0, 1),
      (gen_random_uuid(), '${ids.child}', gen_random_uuid(), 'unpriced', 'p', 200, 1, 1, 0, 0, NULL, NULL, NULL, NULL, 1);
  INSERT INTO schedules (id, team_id, name, cron_schedule, timezone, anchor_at, prompt, overlap, enabled, creator_kind, creator_uid,
      editor_kind, editor_uid)
    VALUES ('${ids.schedule}', '${ids.team}', 'S', '@daily', 'UTC', now(), 'a', 'allow', false, 'user', 'A', 'user', 'A');
  INSERT INTO code_host_credentials (id, team_id, user_id, kind, host, username, vault_key_id, sealed_secret)
    VALUES (gen_random_uuid(), '${ids.team}', '${ids.member}', 'token', 'h', 'u', 'k', 'x');`;

test('gives budgets, owners and secrets to an installation with data at 0026, one migration after another', async () => {
  const empty = await createEmptyDatabase();
  const db = await openDatabase({ address: { connectionString: empty.url }, maxConnections: 2, log: silentLog });
  try {
    await migrateDatabase(db, { upTo: 26 });
    await db.onOwnConnection((client) => client.query(before));
    const later = (await readMigrations()).filter(({ version }) => version > 26);
    for (const { version, name } of later) {
      expect(await migrateDatabase(db, { upTo: version })).toEqual([name]);
      if (name.includes('worker_pools'))
        await db.query(`INSERT INTO worker_pools VALUES ($1, 'rack', 'user', 'A', '2026-01-02')`, [ids.team]);
    }
    expect(
      await db.query(
        `SELECT uid, revision, author_kind, author_uid, created_at = '2026-01-02' AS is_old FROM content_revisions WHERE kind = 'worker_pool'`,
      ),
    ).toEqual([{ uid: `rack@${ids.team}`, revision: 1, author_kind: 'user', author_uid: 'A', is_old: true }]);

    expect(
      await db.query('SELECT u.uid, m.role FROM team_members m JOIN users u ON u.id = m.user_id ORDER BY 1'),
    ).toEqual([
      { uid: 'A', role: 'owner' },
      { uid: 'B', role: 'admin' },
      { uid: 'C', role: 'member' },
    ]);
    expect(await db.query('SELECT spent_usd::float8 AS spent FROM team_spend')).toEqual([{ spent: 3.5 }]);
    const spend = await db.query('SELECT run_id AS id, spent_usd::float8 AS spent, answers::integer FROM run_spend');
    expect(spend).toEqual(
      expect.arrayContaining([
        { id: ids.parent, spent: 3.5, answers: 3 },
        { id: ids.child, spent: 0.5, answers: 2 },
      ]),
    );
    const days = await db.query(
      'SELECT model_id, requests::integer, cost_usd::float8 AS cost, unpriced_requests::integer AS unpriced FROM usage_days ORDER BY 1',
    );
    expect(days).toEqual([
      { model_id: 'm', requests: 2, cost: 3.5, unpriced: 0 },
      { model_id: 'unpriced', requests: 1, cost: 0, unpriced: 1 },
    ]);
    const oldParts = await db.query(`
      SELECT tsvector_to_array(parts) = tsvector_to_array(mark_parts(search_mark(r.team_id, search_week(updated_at)),
        search_parts(title, skill_spec, prompt))) AS "areSame" FROM runs r JOIN run_search s ON s.run_id = r.id`);
    expect(oldParts).toEqual([{ areSame: true }, { areSame: true }]);
    await expect(db.query("UPDATE executions SET token_hash = 'token'")).rejects.toThrow(/executions_token/);
    await db.query('DELETE FROM runs WHERE id = $1', [ids.child]);
    expect(await db.query('SELECT facet FROM run_facets')).toEqual([]);
    expect(await db.query('SELECT file_name FROM attachments')).toEqual([{ file_name: 'a' }]);
    expect(await db.query('SELECT user_uid FROM schedules')).toEqual([{ user_uid: null }]);
    // The credentials of a person who leaves the team are deleted from it.
    await db.query('DELETE FROM team_members WHERE user_id = $1', [ids.member]);
    expect(await db.query('SELECT id FROM code_host_credentials')).toEqual([]);
  } finally {
    await db.close();
    await empty.drop();
  }
});
