/**
 * Tests the migration to authors of texts. The migration finds the author of each text in the stored revisions, and changes no executor.
 */
import { randomUUIDv7 } from 'node:crypto';
import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { createEmptyDatabase } from '../../../../test/database.ts';
import { silentLog } from '../database/log.ts';
import { openDatabase } from '../database/open-database.ts';
import { migrateDatabase } from './migrate.ts';

const team = randomUUIDv7();
const uid = 'E'.repeat(22);
const factory = 'F'.repeat(22);
const [schedule, server] = [randomUUIDv7(), randomUUIDv7()];

const empty = closeAtEnd(await createEmptyDatabase());
const db = closeAtEnd(
  await openDatabase({ address: { connectionString: empty.url }, maxConnections: 2, log: silentLog }),
);
await migrateDatabase(db, { upTo: 23 });
await db.query('INSERT INTO teams (id, uid, name) VALUES ($1, $2, $2)', [team, 'T'.repeat(22)]);
for (const person of ['ada', 'bob', 'cy'])
  await db.query('INSERT INTO users (id, uid, display_name) VALUES ($1, $2, $2)', [randomUUIDv7(), person]);
const edit = (person: string, config: object) =>
  db.query(
    `INSERT INTO environments (uid, team_id, config, last_editor_kind, last_editor_uid) VALUES ($1, $2, $3, 'user', $4)
       ON CONFLICT (uid) DO UPDATE SET config = $3, last_editor_uid = $4`,
    [uid, team, JSON.stringify(config), person],
  );
await edit('ada', { name: 'E', setup_commands: ['npm ci', 'make'], limits: { memory_mb: 1024 } });
await edit('bob', { name: 'F', setup_commands: ['npm ci', 'npm test', 'make'], limits: { memory_mb: 1024 } });
await edit('cy', { name: 'F', setup_commands: ['npm ci', 'npm test', 'make'], limits: { memory_mb: 2048 } });
await db.query(`INSERT INTO acceptances (user_uid, kind, uid, revision) VALUES ('ada', 'environment', $1, 2)`, [uid]);
await db.query(
  `INSERT INTO schedules (id, team_id, name, cron_schedule, timezone, anchor_at, prompt, overlap, enabled, creator_kind, creator_uid,
       editor_kind, editor_uid)
     VALUES ($1, $2, 'S', '@every 1h', 'UTC', now(), 'print all', 'allow', false, 'user', 'ada', 'user', 'ada')`,
  [schedule, team],
);
await db.query(`UPDATE schedules SET agent_config = '{"model_id": "m"}', editor_uid = 'bob' WHERE id = $1`, [schedule]);
await db.query(
  `INSERT INTO mcp_servers (id, team_id, name, command, value_names, vault_key_id, sealed_values, editor_kind, editor_uid)
     VALUES ($1, $2, 'M', 'server', '{ONE}', 'k', '', 'user', 'ada')`,
  [server, team],
);
await db.query(`UPDATE mcp_servers SET name = 'N', command = 'server', editor_uid = 'bob' WHERE id = $1`, [server]);
await db.query(`INSERT INTO factories (uid, team_id, name) VALUES ($1, $2, 'F')`, [factory, team]);
await db.query(
  `INSERT INTO automations (uid, factory_uid, team_id, name, prompt, enabled, triggers, overlap, creator_kind, creator_uid, editor_kind, editor_uid)
     VALUES ($1, $2, $3, 'A', 'p', true, '[]', 'allow', 'user', 'ada', 'user', 'bob')`,
  ['A'.repeat(22), factory, team],
);
await db.query(`INSERT INTO worker_pools (team_id, name, owner_kind, owner_uid) VALUES ($1, 'pool', 'user', 'ada')`, [
  team,
]);
await db.query(
  `INSERT INTO worker_pool_connectors (team_id, pool, kind, uid, added_by_uid) VALUES ($1, 'pool', 'user', 'cy', 'bob')`,
  [team],
);
await migrateDatabase(db);

/** Returns the authors of the texts of the present revision that a person has neither written nor accepted, and these texts. */
async function openTo(person: string, kind: string, uidOfContent: string): Promise<Record<string, string[]>> {
  const rows = await db.query<{ author: { uid: string }; texts: string[] }>(
    `SELECT o.author, o.texts FROM content_revisions c CROSS JOIN LATERAL open_authors(c.kind, c.uid, c.texts, 'user', $1) o
     WHERE c.kind = $2 AND c.uid = $3 AND c.superseded_at IS NULL`,
    [person, kind, uidOfContent],
  );
  return Object.fromEntries(
    rows.map(({ author, texts }) => [author.uid, texts.map((key) => key.replace(/=.*"/, '="'))]),
  );
}

test('the author of a text is that of the oldest stored revision since which it is unchanged, and acceptances stand', async () => {
  const command = '["setup_commands", "="]';
  expect(await openTo('cy', 'environment', uid)).toEqual({ ada: [command, command], bob: [command] });
  // Ada wrote two commands and accepted revision 2.
  expect(await openTo('ada', 'environment', uid)).toEqual({ cy: ['["limits", "memory_mb"]'] });
  expect(await openTo('bob', 'mcp_server', server)).toEqual({
    ada: ['["command"]', '["env", "ONE"]', '-["args"]'].sort(),
  });
});

test('the last editor stays the executor, and is not the author of what others wrote', async () => {
  const rows = await db.query('SELECT executor_uid FROM schedules UNION ALL SELECT executor_uid FROM automations');
  expect(rows).toEqual([{ executor_uid: 'bob' }, { executor_uid: 'bob' }]);
  expect(await openTo('bob', 'schedule', schedule)).toEqual({ ada: ['-["metadata"]', '["prompt"]'] });
});

test('connectors of a pool are texts of who added them', async () => {
  expect(await openTo('ada', 'worker_pool', `pool@${team}`)).toEqual({ bob: ['["connectors", "="]'] });
});

test('code that knows no authors of texts can change contents', async () => {
  await db.query(
    `UPDATE mcp_servers SET values_number = values_number + 1, value_names = '{ONE,TWO}', editor_uid = 'cy' WHERE id = $1`,
    [server],
  );
  expect(await openTo('ada', 'mcp_server', server)).toEqual({ cy: ['["env", "ONE"]', '["env", "TWO"]'] });
  await db.query(`UPDATE schedules SET prompt = 'other', editor_uid = 'cy' WHERE id = $1`, [schedule]);
  expect(await db.query('SELECT executor_uid FROM schedules')).toEqual([{ executor_uid: 'bob' }]);
  // Bob has accepted nothing, so the earlier author of the prompt stays beside Cy.
  expect(Object.keys(await openTo('bob', 'schedule', schedule))).toEqual(['ada', 'cy']);
});
