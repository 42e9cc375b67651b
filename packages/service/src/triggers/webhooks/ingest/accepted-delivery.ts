import type { SignatureSchemeName } from '@runyard/contract/webhooks/webhooks';

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
