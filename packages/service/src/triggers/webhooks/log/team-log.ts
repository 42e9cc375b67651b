/** Lists the deliveries to all webhooks of a team. */
import type {
  ListTeamDeliveriesQuery,
  ListTeamDeliveriesResponse,
  TeamWebhookDelivery,
} from '@runyard/contract/automations/team-lists';
import { type CursorSigner, listIdentity, readCursor, writeCursor } from '../../../platform/store/cursor.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, type RowOf, text, uuid } from '../../../platform/store/database/statement.ts';
import { greatestUuid } from '../../../platform/store/database/uuid.ts';
import { deliveryColumns, deliveryRow, toDelivery } from './deliveries.ts';

/**
 * Largest number of deliveries that are read for one page. Only one filter of a request uses an index; for the other filters, the rows
 * must be read.
 */
export const maxLookedAt = 10_000;
/**
 * The largest expected difference between the time in a delivery's id, which the clock of a service process gives, and `received_at`,
 * which the clock of the database gives.
 */
const maxClockDifferenceMs = 5 * 60_000;

export const teamDeliveryRow = { ...deliveryRow, webhook_uid: text(), webhook_name: text(), factory_uid: text() };

/** SQL of the columns of a delivery `d` and its webhook `w`. */
export const teamDeliveryColumns = `${deliveryColumns}, d.webhook_uid, w.name AS webhook_name, w.factory_uid`;

export const toTeamDelivery = (found: RowOf<typeof pages.team.read>): TeamWebhookDelivery => ({
  ...toDelivery(found),
  webhook_uid: found.webhook_uid,
  webhook_name: found.webhook_name,
  factory_uid: found.factory_uid,
});

/**
 * Defines the statements that read pages with the index on `columns` and the id. Parameters: the ids are less than $1 and at least $2;
 * the values of the columns begin at $3. The statements compare whole rows, `(column, id) < (value, $1)`, and not single columns. With
 * conditions on single columns, PostgreSQL could use the primary key. For a team with few deliveries, it would then read the
 * deliveries of all teams.
 */
function pagesBy(index: string, columns: readonly string[], isIndexed = 'true') {
  const names = [...columns, 'id'].join(', ');
  const values = columns.map((_, n) => `$${n + 3}`).join(', ');
  // The inner and the outer query have the same order, so PostgreSQL does not sort the rows again.
  const order = [...columns, 'id'].map((name) => `${name} DESC`).join(', ');
  const lookedAt = `
      FROM webhook_deliveries WHERE ${isIndexed} AND (${names}) < (${values}, $1) AND (${names}) >= (${values}, $2)
      ORDER BY ${order}`;
  const next = columns.length + 3;
  const [team, webhook, label, event, started, after, before, factory, limit] = Array.from(
    { length: 9 },
    (_, n) => `$${next + n}`,
  );
  return {
    read: defineStatement({
      name: `read_deliveries_of_team_by_${index}`,
      text: `
    SELECT ${teamDeliveryColumns} FROM (
      SELECT * FROM (SELECT * ${lookedAt} LIMIT ${maxLookedAt}) looked_at
      WHERE team_id = ${team} AND (${webhook}::text IS NULL OR webhook_uid = ${webhook}) AND (${label}::text IS NULL OR label = ${label})
        AND (${event}::text IS NULL OR provider_event = ${event})
        AND (${started}::boolean IS NULL OR (cardinality(runs) > 0) = ${started})
        AND (${after}::timestamptz IS NULL OR received_at >= ${after}) AND (${before}::timestamptz IS NULL OR received_at < ${before})
        AND (webhook_uid IN (SELECT uid FROM webhooks
          WHERE team_id = ${team} AND (${factory}::text IS NULL OR factory_uid = ${factory}))) IS TRUE
      ORDER BY ${order} LIMIT ${limit}) d JOIN webhooks w ON w.uid = d.webhook_uid
    ORDER BY d.id DESC`,
      row: teamDeliveryRow,
    }),
    /**
     * If a page has found too few deliveries among the first `maxLookedAt`, finds the last delivery that it has read, where the next
     * page begins. Returns no row if there are no more deliveries, or if that delivery belongs to another team.
     */
    readEnd: defineStatement({
      name: `read_end_of_deliveries_of_team_by_${index}`,
      text: `
    SELECT id FROM webhook_deliveries WHERE team_id = ${team} AND id = (SELECT id ${lookedAt} OFFSET ${maxLookedAt - 1} LIMIT 1)`,
      row: { id: uuid },
    }),
  };
}

const pages = {
  team: pagesBy('id', ['team_id']),
  webhook: pagesBy('webhook', ['webhook_uid']),
  event: pagesBy('event', ['team_id', 'provider_event'], 'provider_event IS NOT NULL'),
  refused: pagesBy('label', ['team_id', 'label'], "label <> 'ACCEPTED'"),
};

type Filters = Omit<ListTeamDeliveriesQuery, 'limit' | 'cursor'>;

/** Returns the statements with the index that fits the filters best, and the values of the columns of this index. */
function indexFor(teamId: string, { webhook_uid: webhookUid, event, label }: Filters) {
  if (webhookUid !== undefined) return { ...pages.webhook, values: [webhookUid] };
  if (event !== undefined) return { ...pages.event, values: [teamId, event] };
  if (label !== undefined && label !== 'ACCEPTED') return { ...pages.refused, values: [teamId, label] };
  return { ...pages.team, values: [teamId] };
}

/** Returns the smallest UUIDv7 of a time, which is in milliseconds since 1970. */
const idAtTime = (ms: number): string => {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
};

/** Returns one page of deliveries, newest first. Returns null if the cursor was made for another list. */
export async function listTeamDeliveries(
  db: Queryable,
  signer: CursorSigner,
  teamId: string,
  { limit, cursor, ...filters }: ListTeamDeliveriesQuery,
): Promise<ListTeamDeliveriesResponse | null> {
  const { factory_uid, webhook_uid, label, event, started, received_after: after, received_before: before } = filters;
  const identity = listIdentity(['deliveries of team', teamId, filters]);
  let end = before === undefined ? greatestUuid : idAtTime(Date.parse(before) + maxClockDifferenceMs);
  if (cursor !== undefined) {
    const found = readCursor(signer, identity, cursor);
    if (!found.ok) return null;
    end = found.position.id;
  }
  const first = idAtTime(after === undefined ? 0 : Date.parse(after) - maxClockDifferenceMs);
  const { read, readEnd, values } = indexFor(teamId, filters);
  const index = [end, first, ...values];
  const wanted = [webhook_uid, label, event, started, after, before, factory_uid].map((each) => each ?? null);
  const rows = await db.query(read, [...index, teamId, ...wanted, limit + 1]);
  const page = rows.slice(0, limit);
  const next = rows.length > limit ? page.at(-1)?.id : (await db.query(readEnd, [...index, teamId]))[0]?.id;
  return {
    deliveries: page.map(toTeamDelivery),
    page_info: {
      has_next_page: next !== undefined,
      ...(next === undefined ? {} : { next_cursor: writeCursor(signer, identity, { value: null, id: next }) }),
    },
  };
}

/**
 * In a database that was copied, sets the transaction numbers of deliveries to 0 if this database has not assigned these numbers yet.
 * `edges/live/epoch.ts` does this in the transaction in which it renews the epoch.
 */
export const forgetFutureTransactionsOfDeliveries = defineStatement({
  name: 'forget_future_transactions_of_deliveries',
  text: `UPDATE webhook_deliveries SET xact = '0' WHERE xact > '0' AND xact >= pg_current_xact_id()`,
  row: {},
});
