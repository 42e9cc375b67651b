/** Deliveries with the same signed bytes as an earlier one, where the signature does not cover the id of a delivery. */

/** The signed bytes of a delivery, and how long equal ones count as a duplicate. */
export interface SignedBytes {
  /** SHA-256 */
  readonly hash: Buffer;
  readonly windowSeconds: number;
}

/** Returns why such a delivery counts as a duplicate. */
export const explainSameBytes = (earlierId: string, windowSeconds: number | string): string =>
  `the delivery ${earlierId} had the same signed bytes. The signature does not cover the id, so equal bytes count once in ${windowSeconds} s (duplicate_window_seconds)`;

/** SQL: `explainSameBytes` of two SQL expressions. */
export const explainSameBytesSql = (earlierId: string, windowSeconds: string): string =>
  explainSameBytes(`' || ${earlierId} || '`, `' || ${windowSeconds} || '`).replace(/^/, "'").replace(/$/, "'");

/**
 * SQL: the delivery that the webhook accepted last with the same signed bytes, within the window; NULL: there is none. `i` has the columns
 * webhook_uid, signed_hash and window_seconds.
 */
export const findSameBytes = (i: string): string => `(
  SELECT d.id FROM webhook_deliveries d WHERE d.webhook_uid = ${i}.webhook_uid AND d.signed_hash = ${i}.signed_hash AND d.label = 'ACCEPTED'
    AND d.received_at > clock_timestamp() - make_interval(secs => ${i}.window_seconds) ORDER BY d.id DESC LIMIT 1)`;
