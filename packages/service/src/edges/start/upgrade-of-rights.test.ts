/**
 * Tests the upgrade from one author for each revision to one author for each text. A team of five people shares environments, schedules and
 * agent identities. Each person accepts the previewed texts once. After that, all runs have the same secrets as before the upgrade.
 */
import { randomBytes, randomUUIDv7 } from 'node:crypto';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { ExecutorPreview, PreviewAcceptancesResponse } from '@runyard/contract/runs/acceptances';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEmptyDatabase } from '../../../test/database.ts';
import { startTestService, type TestService } from '../../../test/service.ts';
import { silentLog } from '../../platform/store/database/log.ts';
import { openDatabase } from '../../platform/store/database/open-database.ts';
import { migrateDatabase } from '../../platform/store/migrations/migrate.ts';
import { hashKey, newRawKey } from '../../team/access/keys/key.ts';
import { previewUpgrade } from './installation-commands.ts';

const people = ['ada', 'bob', 'cy', 'dee', 'eve'] as const;
type Name = (typeof people)[number];
const uidOf = (name: string) => name.padEnd(22, '0');
const keys = Object.fromEntries(people.map((name) => [name, newRawKey()]));
const team = randomUUIDv7();
const [environment, identity] = [uidOf('environment'), uidOf('identity')];
const [adasSchedule, bobsSchedule] = [randomUUIDv7(), randomUUIDv7()];
const identityKey = newRawKey();

let service: TestService;
let before: readonly ExecutorPreview[];
let tablesBefore: unknown;
let tablesAfterPreview: unknown;
let dropDatabase: () => Promise<void>;

beforeAll(async () => {
  const empty = await createEmptyDatabase();
  const db = await openDatabase({ address: { connectionString: empty.url }, maxConnections: 10, log: silentLog });
  dropDatabase = async () => {
    await db.close();
    await empty.drop();
  };
  await migrateDatabase(db, { upTo: 23 });
  await db.query(`INSERT INTO teams (id, uid, name, max_concurrent_executions) VALUES ($1, $2, 'Five', 1000)`, [
    team,
    uidOf('team'),
  ]);
  const insertKey = (raw: string, kind: string, userId: string | null, agentUid: string | null) =>
    db.query(
      `INSERT INTO api_keys (id, hash, kind, name, team_id, user_id, agent_uid, prefix, last_four)
       VALUES ($1, $2, $3, 'K', $4, $5, $6, 'p', 'l')`,
      [randomUUIDv7(), hashKey(raw), kind, team, userId, agentUid],
    );
  const insertSecret = (name: string, owner: string | null) =>
    db.query(
      `INSERT INTO stored_secrets (id, team_id, owner_uid, name, vault_key_id, sealed_value) VALUES ($1, $2, $3, $4, 'old', $5)`,
      [randomUUIDv7(), team, owner, name, randomBytes(8)],
    );
  for (const name of people) {
    const userId = randomUUIDv7();
    await db.query('INSERT INTO users (id, uid, display_name) VALUES ($1, $2, $3)', [userId, uidOf(name), name]);
    await db.query('INSERT INTO team_members (team_id, user_id, role) VALUES ($1, $2, $3)', [
      team,
      userId,
      name === 'ada' ? 'owner' : 'member',
    ]);
    await insertKey(keys[name] ?? '', 'personal', userId, null);
    // Dee and Eve have nothing of their own.
    if (['ada', 'bob', 'cy'].includes(name)) await insertSecret('MINE', uidOf(name));
  }
  await insertSecret('SHARED', null);
  // All five people have edited the environment. Before the upgrade, the last editor counted as the author of the whole environment.
  const commands = ['npm ci', 'npm test', 'make', 'lint', 'docs'];
  for (const [index, name] of people.entries())
    await db.query(
      `INSERT INTO environments (uid, team_id, config, last_editor_kind, last_editor_uid) VALUES ($1, $2, $3, 'user', $4)
       ON CONFLICT (uid) DO UPDATE SET config = $3, last_editor_uid = $4`,
      [
        environment,
        team,
        JSON.stringify({ name: 'E', setup_commands: commands.slice(0, index + 1), secrets: [{ name: 'SHARED' }] }),
        uidOf(name),
      ],
    );
  const insertSchedule = (id: string, executor: Name) =>
    db.query(
      `INSERT INTO schedules (id, team_id, name, cron_schedule, timezone, anchor_at, prompt, agent_config, overlap, enabled, next_run_at,
         creator_kind, creator_uid, editor_kind, editor_uid)
       VALUES ($1, $2, $3, '@every 5m', 'UTC', now(), 'p', $4, 'allow', true, now() + interval '1 day', 'user', $5, 'user', $5)`,
      [
        id,
        team,
        `Nightly of ${executor}`,
        JSON.stringify({ environment_id: environment, secrets: [{ name: 'MINE' }] }),
        uidOf(executor),
      ],
    );
  await insertSchedule(adasSchedule, 'ada');
  await insertSchedule(bobsSchedule, 'ada');
  // Bob changed the prompt of Ada's second schedule, and has been its executor since then.
  await db.query(`UPDATE schedules SET prompt = 'q', name = 'Nightly of bob', editor_uid = $2 WHERE id = $1`, [
    bobsSchedule,
    uidOf('bob'),
  ]);
  await db.query(
    `INSERT INTO agent_identities (uid, team_id, name, on_behalf_of_enabled, secrets, config, editor_kind, editor_uid)
     VALUES ($1, $2, 'I', true, '{SHARED}', '{"base_prompt": "careful"}', 'user', $3)`,
    [identity, team, uidOf('cy')],
  );
  await db.query(`UPDATE agent_identities SET description = 'changed', editor_uid = $2 WHERE uid = $1`, [
    identity,
    uidOf('ada'),
  ]);
  await insertKey(identityKey, 'agent', null, identity);
  // Ada accepted the environment before Dee changed it.
  await db.query(`INSERT INTO acceptances (user_uid, kind, uid, revision) VALUES ($1, 'environment', $2, 3)`, [
    uidOf('ada'),
    environment,
  ]);

  const tables = () =>
    db.query('SELECT revision, author_uid, superseded_at FROM content_revisions ORDER BY uid, revision');
  tablesBefore = await tables();
  const previews = await previewUpgrade({
    dataFolder: '/nowhere',
    blobs: { RUNYARD_BLOBS: { kind: 'folder', path: '/nowhere' } },
    databaseUrl: empty.url,
  });
  before = previews.find(({ name }) => name === 'Five')?.executors ?? [];
  tablesAfterPreview = await tables();
  await migrateDatabase(db);
  service = await startTestService({ database: { db, url: empty.url, drop: async () => undefined } });
  for (const name of ['ada', 'bob', 'cy'])
    await request('PUT', '/secrets/MINE', keys[name] ?? '', {
      value: `MINE ${name} ${randomUUIDv7()}`,
      scope: 'personal',
    });
  await request('PUT', '/secrets/SHARED', keys.ada ?? '', { value: `SHARED ${randomUUIDv7()}`, scope: 'team' });
}, 120_000);
afterAll(async () => {
  await service.close();
  await dropDatabase();
});

async function request<T>(method: string, path: string, key: string, body: object = {}): Promise<T> {
  const answer = await service.request<T>(method, path, { key, body });
  expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300);
  return answer.body;
}
const preview = async (name: Name) =>
  (await service.ok<PreviewAcceptancesResponse>('GET', '/acceptances/preview', { key: keys[name] ?? '' })).executors;
/** The parts of a preview that do not depend on when it was made. */
const essence = (executors: readonly ExecutorPreview[]) =>
  Object.fromEntries(
    executors.map(({ executor, waiting, starts }) => [
      executor.display_name,
      {
        waiting: waiting.map(({ kind, revision, authors }) => [
          kind,
          revision,
          authors.map((each) => each.display_name).sort(),
        ]),
        starts: starts.map((start) => [start.name, start.withheld.map(({ name }) => name)]),
      },
    ]),
  );
const namesOf = async (runId: string) => {
  const { runToken } = await service.claimRun(runId);
  const task = await service.request<AgentTask>('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });
  return (task.body.secrets ?? []).map(({ name }) => name).sort();
};
/** Starts what each person starts on a day, and returns the secrets of each run, or the status of the refusal. */
async function day(): Promise<Record<string, readonly string[] | number>> {
  const results: Record<string, readonly string[] | number> = {};
  const start = async (what: string, path: string, key: string, body: object) => {
    const answer = await service.request<{ run_id: string }>('POST', path, { key, body });
    results[what] = answer.status === 200 ? await namesOf(answer.body.run_id) : answer.status;
  };
  for (const name of people) {
    const mine = ['ada', 'bob', 'cy'].includes(name) ? { secrets: [{ name: 'MINE' }] } : {};
    const body = { prompt: 'p', config: { environment_id: environment, ...mine } };
    await start(name, '/agent/runs', keys[name] ?? '', body);
  }
  await start('ada by hand', `/agent/schedules/${adasSchedule}/run`, keys.ada ?? '', {});
  await start('bob by hand', `/agent/schedules/${bobsSchedule}/run`, keys.bob ?? '', {});
  await start('identity', '/agent/runs', identityKey, { prompt: 'p', config: { environment_id: environment } });
  const forCy = { prompt: 'p', on_behalf_of: uidOf('cy'), config: { secrets: [{ name: 'MINE' }] } };
  await start('identity for cy', '/agent/runs', identityKey, forCy);
  return results;
}
const friday = {
  ada: ['MINE', 'SHARED'],
  bob: ['MINE', 'SHARED'],
  cy: ['MINE', 'SHARED'],
  dee: ['SHARED'],
  eve: ['SHARED'],
  'ada by hand': ['MINE', 'SHARED'],
  'bob by hand': ['MINE', 'SHARED'],
  identity: ['SHARED'],
  'identity for cy': ['MINE', 'SHARED'],
};

test('the preview before the upgrade names what each executor would lose, and changes nothing', async () => {
  expect(tablesAfterPreview).toEqual(tablesBefore);
  expect(essence(before)).toEqual({
    ada: {
      waiting: [
        ['agent_identity', 2, ['cy']],
        ['schedule', 2, ['bob']],
        ['environment', 5, ['dee', 'eve']],
      ],
      starts: [['Nightly of ada', ['MINE']]],
    },
    bob: {
      waiting: [
        ['agent_identity', 2, ['cy']],
        ['schedule', 2, ['ada']],
        ['schedule', 1, ['ada']],
        ['environment', 5, ['ada', 'cy', 'dee', 'eve']],
      ],
      starts: [['Nightly of bob', ['MINE']]],
    },
    cy: {
      waiting: [
        ['schedule', 2, ['ada', 'bob']],
        ['schedule', 1, ['ada']],
        ['environment', 5, ['ada', 'bob', 'dee', 'eve']],
      ],
      starts: [],
    },
  });
});

test('after the upgrade nobody loses rights of the team, and one acceptance of the preview brings all others back', async () => {
  expect(essence(await preview('ada'))).toEqual(essence(before));
  // A member sees only the entries about this member.
  expect((await preview('bob')).map(({ executor }) => executor.uid)).toEqual([uidOf('bob')]);
  const monday = await day();
  expect(monday).toEqual({
    ...friday,
    ada: 403,
    bob: 403,
    cy: 403,
    'ada by hand': 403,
    'bob by hand': 403,
  });
  for (const name of ['ada', 'bob', 'cy'] as const) {
    const own = (await preview(name)).find(({ executor }) => executor.uid === uidOf(name));
    for (const { kind, uid, revision } of own?.waiting ?? [])
      await request('POST', '/acceptances', keys[name] ?? '', { kind, uid, revision });
  }
  expect(await preview('ada')).toEqual([]);
  expect(await day()).toEqual(friday);
});

test('during the week an edit by one of them asks only those whose runs it changes, and changes no executor', async () => {
  const { config } = await request<{ config: object }>('GET', `/agent/environments/${environment}`, keys.dee ?? '');
  const edit = (members: object, name: Name) =>
    request<{ waiting?: { people: { uid: string }[]; starts: { name: string }[]; kept_authors: object[] } }>(
      'PUT',
      `/agent/environments/${environment}`,
      keys[name] ?? '',
      { config: { ...config, ...members } },
    );
  expect((await edit({ name: 'Renamed', description: 'By Dee' }, 'dee')).waiting).toBeUndefined();
  expect(await day()).toEqual(friday);
  const { waiting } = await edit({ name: 'Renamed', working_directory: 'packages' }, 'dee');
  expect(waiting?.people.map(({ uid }) => uid)).toEqual(['ada', 'bob', 'cy'].map(uidOf));
  expect(waiting?.starts.map(({ name }) => name)).toEqual(['Nightly of ada', 'Nightly of bob']);
  expect(await day()).toMatchObject({
    ada: 403,
    dee: ['SHARED'],
    identity: ['SHARED'],
    'identity for cy': ['MINE', 'SHARED'],
  });
  // Ada changes the same member without having accepted it, so Dee stays an author beside her until Ada accepts it.
  const kept = await edit({ name: 'Renamed', working_directory: 'packages/web' }, 'ada');
  expect(kept.waiting?.kept_authors).toMatchObject([{ uid: uidOf('dee') }]);
});
