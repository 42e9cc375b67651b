/** Lists the webhooks of all factories of a team, with the numbers of their deliveries. */
import { type ListTeamThingsQuery, maxCountedEvents, type TeamWebhook } from '@runyard/contract/automations/team-lists';
import type { PageInfo } from '@runyard/contract/wire/profiles';
import { type CursorSigner, positionOfName, readPage } from '../../platform/store/cursor.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, nullable, text, timestamp, uuid } from '../../platform/store/database/statement.ts';
import { idAt } from '../../platform/store/database/uuid.ts';
import { readFactoryNames } from '../factories/factories.ts';
import { deliveryRow } from './log/deliveries.ts';
import { toWebhook, webhookColumns, webhookRow } from './webhooks.ts';

const readWebhooks = defineStatement({
  name: 'read_webhooks_of_team',
  text: `
    SELECT ${webhookColumns}, factory_uid FROM webhooks
    WHERE team_id = $1 AND ($2::text IS NULL OR factory_uid = $2) AND (name COLLATE "C", uid) > ($3 COLLATE "C", $4)
    ORDER BY name COLLATE "C", uid LIMIT $5`,
  row: { ...webhookRow, factory_uid: text() },
});

const readNumbers = defineStatement({
  name: 'read_delivery_numbers_of_webhooks',
  text: `
    SELECT w.uid, day.accepted, day.duplicate, day.rejected, newest.id, newest.label, newest.received_at, newest.runs
    FROM unnest($1::text[]) AS w (uid)
      CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE label = 'ACCEPTED') AS accepted, count(*) FILTER (WHERE label = 'DUPLICATE') AS duplicate,
          count(*) FILTER (WHERE label NOT IN ('ACCEPTED', 'DUPLICATE')) AS rejected
        FROM (SELECT label FROM webhook_deliveries d WHERE d.webhook_uid = w.uid AND d.id >= ${idAt('24 hours')}
          ORDER BY d.id DESC LIMIT ${maxCountedEvents}) counted) day
      LEFT JOIN LATERAL (
        SELECT id, label, received_at, cardinality(runs) AS runs FROM webhook_deliveries d WHERE d.webhook_uid = w.uid
        ORDER BY d.id DESC LIMIT 1) newest ON true`,
  row: {
    uid: text(),
    accepted: integer,
    duplicate: integer,
    rejected: integer,
    id: nullable(uuid),
    label: nullable(deliveryRow.label),
    received_at: nullable(timestamp),
    runs: nullable(integer),
  },
});

/** How many deliveries a webhook got in the last 24 hours, and its last delivery. */
type Numbers = Pick<TeamWebhook, 'last_24_hours' | 'last_delivery'>;

const none: Numbers = { last_24_hours: { accepted: 0, duplicate: 0, rejected: 0 } };

async function numbersOf(db: Queryable, uids: readonly string[]): Promise<ReadonlyMap<string, Numbers>> {
  const rows = await db.query(readNumbers, [uids]);
  return new Map(
    rows.map(({ uid, accepted, duplicate, rejected, id, label, received_at, runs }) => [
      uid,
      {
        last_24_hours: { accepted, duplicate, rejected },
        ...(id === null || label === null || received_at === null
          ? {}
          : { last_delivery: { delivery_id: id, label, received_at, runs: runs ?? 0 } }),
      },
    ]),
  );
}

/** A webhook without its URL, which depends on the address of the service. */
type StoredTeamWebhook = Omit<TeamWebhook, 'url'>;

/** Returns one page of webhooks, sorted by name. Returns null if the cursor was made for another list. */
export async function listTeamWebhooks(
  db: Queryable,
  signer: CursorSigner,
  teamId: string,
  query: ListTeamThingsQuery,
): Promise<{ readonly webhooks: StoredTeamWebhook[]; readonly page_info: PageInfo } | null> {
  const { factory_uid: factoryUid = null } = query;
  const found = await readPage(signer, query, {
    list: ['webhooks of team', teamId, factoryUid],
    read: (after, count) => db.query(readWebhooks, [teamId, factoryUid, after?.value ?? '', after?.id ?? '', count]),
    positionOf: positionOfName,
  });
  if (!found) return null;
  const { page, page_info } = found;
  const [numbers, names] = await Promise.all([
    numbersOf(
      db,
      page.map(({ uid }) => uid),
    ),
    readFactoryNames(db, teamId, [...new Set(page.map(({ factory_uid: uid }) => uid))]),
  ]);
  return {
    webhooks: page.map((row) => ({
      ...toWebhook(row),
      factory_uid: row.factory_uid,
      factory_name: names.get(row.factory_uid) ?? '',
      ...(numbers.get(row.uid) ?? none),
    })),
    page_info,
  };
}
