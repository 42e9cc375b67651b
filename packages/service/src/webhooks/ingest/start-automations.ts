import type { SignatureSchemeName } from '@runyard/contract/webhooks';
import type { Queryable } from '../../store/database/database.ts';

/** A delivery that was accepted, and whose entry in the log the transaction has just written. */
export interface AcceptedDelivery {
  readonly deliveryId: string;
  readonly webhookUid: string;
  readonly webhookName: string;
  readonly factoryUid: string;
  readonly teamId: string;
  readonly scheme: SignatureSchemeName | null;
  /** The provider's name of the event, which GitHub sends in a header; null: it has none. */
  readonly event: string | null;
  /** The JSON as it was received. The run gets it as a file, unchanged. */
  readonly body: Buffer;
  /** The parsed body. Numbers beyond a double are infinite; names may be any text, `__proto__` too. */
  readonly payload: unknown;
}

/**
 * Starts the runs of the automations that deliveries of one team match, notes the outcomes in their entries, all of it in the
 * transaction, and returns for each delivery whether an automation selects its webhook. It may be called again for the same deliveries
 * after the transaction was rolled back. What it throws rolls the deliveries back, and their senders get an error.
 */
export type StartAutomations = (tx: Queryable, deliveries: readonly AcceptedDelivery[]) => Promise<readonly boolean[]>;
