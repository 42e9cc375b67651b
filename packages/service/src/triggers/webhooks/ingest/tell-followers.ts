/** Channel of notices about new deliveries to webhooks and new outcomes. The notices have no payload. */
export const deliveriesChannel = 'runyard_webhook_deliveries';

/**
 * SQL: the result column that notifies the streams of deliveries after the commit (see `platform/store/database/notices.ts`). Each statement
 * that writes deliveries or outcomes has this column.
 */
export const tellFollowers = `'' AS ${deliveriesChannel}`;
