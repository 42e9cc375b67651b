import type { SignatureSchemeName } from '@runyard/contract/webhooks';
import type { Transaction } from '../../../platform/store/database/transaction.ts';
import type { DeliveryRows } from './delivery-rows.ts';

/** A delivery that the transaction accepts. */
export interface AcceptedDelivery {
  readonly deliveryId: string;
  readonly webhookUid: string;
  readonly webhookName: string;
  readonly factoryUid: string;
  readonly teamId: string;
  readonly scheme: SignatureSchemeName | null;
  /** The name of the event, from the header that the webhook or its scheme names; null: there is none. */
  readonly event: string | null;
  /** The JSON as it was received. The run gets it as a file, unchanged. */
  readonly body: Buffer;
  /** The parsed body. Numbers beyond a double are infinite; names may be any text, `__proto__` too. */
  readonly payload: unknown;
}

/** The parts of a delivery by which the automations are found that its webhook feeds. */
export type FeedingDelivery = Pick<AcceptedDelivery, 'webhookUid' | 'factoryUid' | 'scheme'>;

/**
 * Starts the runs of the automations that deliveries of one team match, all in the transaction, and returns for each delivery whether an
 * automation selects its webhook. It notes the outcomes in `rows`, and may write these rows together with the runs.
 */
export type StartAccepted = (
  deliveries: readonly AcceptedDelivery[],
  rows: DeliveryRows,
) => Promise<readonly boolean[]>;

/**
 * Reads the automations of deliveries that the transaction may accept, and returns the function that starts those that it accepts. It
 * sends its first statement at once, and may be called again for the same deliveries after the transaction was rolled back. What it
 * throws rolls the deliveries back, and their senders get an error.
 */
export type StartAutomations = (tx: Transaction, deliveries: readonly FeedingDelivery[]) => Promise<StartAccepted>;
