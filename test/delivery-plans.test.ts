import { ListTeamDeliveriesQuery, ListTeamThingsQuery } from '@runyard/contract/automations/team-lists';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type SeededDeliveries, seedDeliveries } from '../bench/delivery-seed.ts';
import type { Database } from '../packages/service/src/platform/store/database/database.ts';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { openDatabase } from '../packages/service/src/platform/store/database/open-database.ts';
import { migrateDatabase } from '../packages/service/src/platform/store/migrations/migrate.ts';
import { listTeamAutomations } from '../packages/service/src/triggers/automations/team-list.ts';
import { listTeamDeliveries, maxLookedAt } from '../packages/service/src/triggers/webhooks/log/team-log.ts';
import { listTeamWebhooks } from '../packages/service/src/triggers/webhooks/team-list.ts';
import { createEmptyDatabase } from '../packages/service/test/database.ts';
import { observeRows, observeScans } from './support/observed-plans.ts';

const count = 30_000;

let database: Awaited<ReturnType<typeof createEmptyDatabase>>;
let db: Database;
let seeded: SeededDeliveries;
beforeAll(async () => {
  database = await createEmptyDatabase();
  db = await openDatabase({ address: { connectionString: database.url }, maxConnections: 2, log: silentLog });
  await migrateDatabase(db);
  seeded = await seedDeliveries(db, count);
}, 120_000);
afterAll(async () => {
  await db.close();
  await database.drop();
});

const signer = {
  sign: () => 'signature',
  verify: () => true,
};
const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
const filters: Readonly<Record<string, Partial<ListTeamDeliveriesQuery>>> = {
  none: {},
  'a webhook': { webhook_uid: 'webhook-1' },
  'a quiet webhook and a label': { webhook_uid: 'webhook-90', label: 'REJECTED_AUTH' },
  'a factory': { factory_uid: 'factory-3' },
  'a frequent event': { event: 'event-0' },
  'a rare event': { event: 'event-49' },
  accepted: { label: 'ACCEPTED' },
  refused: { label: 'REJECTED_INVALID_JSON' },
  'a label and an event': { label: 'DUPLICATE', event: 'event-40' },
  started: { started: true },
  'a day': { received_after: daysAgo(3), received_before: daysAgo(2) },
  'a day, a label and a webhook': { received_after: daysAgo(9), label: 'DUPLICATE', webhook_uid: 'webhook-2' },
};
const named = Object.entries(filters);

/** Reads pages of 20 deliveries until at least 60 are found or the list ends. Returns their ids. */
async function read(from: Database, teamId: string, query: Partial<ListTeamDeliveriesQuery>): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await listTeamDeliveries(
      from,
      signer,
      teamId,
      ListTeamDeliveriesQuery.parse({ ...query, limit: 20, cursor }),
    );
    ids.push(...(page?.deliveries ?? []).map((each) => each.delivery_id));
    cursor = page?.page_info.next_cursor;
  } while (cursor !== undefined && ids.length < 60);
  return ids;
}

test.each(named)('deliveries filtered by %s are the same as in a query that checks every row', async (_, query) => {
  const { webhook_uid, factory_uid, event, label, started, received_after, received_before } = query;
  const expected = await db.query<{ id: string }>(
    `SELECT id FROM webhook_deliveries d WHERE team_id = $1 AND ($2::text IS NULL OR webhook_uid = $2)
       AND ($3::text IS NULL OR (SELECT factory_uid FROM webhooks w WHERE w.uid = d.webhook_uid) = $3)
       AND ($4::text IS NULL OR provider_event = $4) AND ($5::text IS NULL OR label = $5)
       AND ($6::boolean IS NULL OR (runs <> '{}') = $6) AND received_at >= coalesce($7::timestamptz, '-infinity') AND received_at < coalesce($8::timestamptz, 'infinity')
     ORDER BY id DESC LIMIT 60`,
    [seeded.teamId, webhook_uid, factory_uid, event, label, started, received_after, received_before].map(
      (each) => each ?? null,
    ),
  );
  const found = await read(db, seeded.teamId, query);
  expect(found.slice(0, 60)).toEqual(expected.map(({ id }) => id));
  expect(found.length).toBeGreaterThan(0);
});

test('each page of a list of deliveries reads at most the allowed number of rows, with every filter and for busy and quiet teams', async () => {
  const most: Record<string, number> = {};
  for (const [name, query] of named) {
    const observed = observeRows(db, 'webhook_deliveries', (rows) => {
      most[name] = Math.max(most[name] ?? 0, rows);
    });
    await read(observed, seeded.teamId, query);
  }
  expect(Math.max(...Object.values(most))).toBeLessThanOrEqual(maxLookedAt);
  for (const name of ['none', 'a webhook', 'a frequent event', 'a rare event', 'refused', 'accepted', 'started'])
    expect(most[name], name).toBeLessThan(count / 10);
  let ofQuiet = 0;
  const observed = observeRows(db, 'webhook_deliveries', (rows) => {
    ofQuiet = Math.max(ofQuiet, rows);
  });
  expect(await read(observed, seeded.quietTeamId, {})).toHaveLength(3);
  expect(ofQuiet).toBe(3);
});

test('lists of deliveries, webhooks and automations never scan a whole table, and their counts read only the rows of one day', async () => {
  const scanned = new Set<string>();
  const scans = observeScans(db, ['webhook_deliveries', 'starts'], scanned);
  const query = ListTeamThingsQuery.parse({ limit: 100 });
  for (const [, filter] of named) await read(scans, seeded.teamId, filter);
  await listTeamWebhooks(scans, signer, seeded.teamId, query);
  await listTeamAutomations(scans, signer, seeded.teamId, query);
  expect([...scanned]).toEqual([]);
  const rows = { webhook_deliveries: 0, starts: 0 };
  for (const table of ['webhook_deliveries', 'starts'] as const) {
    const observed = observeRows(db, table, (read) => {
      rows[table] += read;
    });
    await listTeamWebhooks(observed, signer, seeded.teamId, query);
    await listTeamAutomations(observed, signer, seeded.teamId, query);
  }
  expect(rows.webhook_deliveries).toBeLessThan((1.5 * count) / 30);
  expect(rows.starts).toBeLessThan((1.5 * count) / 30);
});
