/** Reads the deliveries to the webhooks of all teams in one order and turns them into frames. */
import type { TeamDeliveryEvent } from '@runyard/contract/automations/team-lists';
import type { Database } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, integer, nullable, text, uuid } from '../../platform/store/database/statement.ts';
import { deliveriesChannel } from '../../triggers/webhooks/ingest/tell-followers.ts';
import { teamDeliveryColumns, teamDeliveryRow, toTeamDelivery } from '../../triggers/webhooks/log/team-log.ts';
import { eventBytes } from './frame.ts';
import { afterRow } from './run-events.ts';
import { horizon, newsOf, pageRows, type TeamSource } from './team-events.ts';
import { rowOfTeamPosition, teamIdOf } from './team-position.ts';

const readDeliveries = defineStatement({
  name: 'read_team_deliveries',
  text: `
    WITH horizon AS MATERIALIZED (${horizon})
    SELECT h.xact::text::bigint AS horizon,
      EXISTS (SELECT FROM webhook_deliveries d WHERE d.xact > '0' AND d.xact >= (SELECT xact FROM horizon)) AS is_held_back, v.*
    FROM horizon h LEFT JOIN (
      SELECT d.xact::text::bigint AS xact, d.team_id, ${teamDeliveryColumns} FROM (
        SELECT * FROM webhook_deliveries d
        WHERE d.xact > '0' AND d.xact >= $2::xid8 AND d.xact < (SELECT xact FROM horizon) AND (d.xact, d.id) > ($2::xid8, $3::uuid)
        ORDER BY d.xact, d.id LIMIT ${pageRows}) d LEFT JOIN webhooks w ON w.uid = d.webhook_uid
    ) v ON true
    ORDER BY v.xact, v.id`,
  // If there is no delivery, all columns of `v` are NULL, also those that are declared as not nullable. So the code skips a row whose `xact` is NULL.
  row: {
    horizon: integer,
    is_held_back: boolean,
    xact: nullable(integer),
    team_id: uuid,
    ...teamDeliveryRow,
    /** NULL if the webhook was deleted a moment ago. */
    webhook_name: nullable(text()),
  },
});

/** The `place` in a position distinguishes the events of one run. A delivery has only one event, so the `place` is the same for all deliveries. */
const placeOfDelivery = afterRow(1);

const readDeliveryNews: TeamSource['read'] = async (db, epoch, after, foreign) => {
  const { xact, runId } = rowOfTeamPosition(after);
  return newsOf(after, await db.query(readDeliveries, [foreign, xact, runId]), ({ webhook_name, ...row }, xact) => {
    const at = { xact, runId: row.id, place: placeOfDelivery };
    if (webhook_name === null) return { at, teamId: null, frames: () => [] };
    const event: TeamDeliveryEvent = { type: 'delivery', delivery: toTeamDelivery({ ...row, webhook_name }) };
    return { at, teamId: row.team_id, frames: () => [{ at, bytes: eventBytes(teamIdOf(epoch, at), event) }] };
  });
};

/** Listens for deliveries until `db` is closed. */
export async function openDeliveryEvents(db: Database): Promise<TeamSource> {
  const listeners = new Set<(areLost: boolean) => void>();
  const tell = (areLost: boolean) => {
    for (const listener of listeners) listener(areLost);
  };
  await db.listen(
    deliveriesChannel,
    () => tell(false),
    () => tell(true),
  );
  return {
    read: readDeliveryNews,
    subscribe: (onNews) => {
      listeners.add(onNews);
      return () => listeners.delete(onNews);
    },
  };
}
