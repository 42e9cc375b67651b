import type { WebhookRules } from '@runyard/contract/webhooks/webhook-rules';
import type { DefinedWebhook } from '@runyard/definitions/definition';

/** The rules for the deliveries of a webhook, with the member names of definition files. */
type FileRules = Pick<DefinedWebhook, 'deliveryIdPath' | 'eventHeader' | 'duplicateWindowSeconds' | 'signature'>;

const present = (members: Readonly<Record<string, unknown>>): object =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));

/** Returns the rules that a file defines, with the member names of the API. */
export function rulesOfFile({
  deliveryIdPath,
  eventHeader,
  duplicateWindowSeconds,
  signature,
}: FileRules): WebhookRules {
  return present({
    delivery_id_path: deliveryIdPath,
    event_header: eventHeader,
    duplicate_window_seconds: duplicateWindowSeconds,
    signature:
      signature &&
      present({
        header: signature.header,
        prefix: signature.prefix,
        algorithm: signature.algorithm,
        encoding: signature.encoding,
        signed: signature.signed,
        id_header: signature.idHeader,
        timestamp_header: signature.timestampHeader,
        max_age_seconds: signature.maxAgeSeconds,
      }),
  });
}

/** Returns the rules of a stored webhook, with the member names of definition files. */
export function fileOfRules({
  delivery_id_path,
  event_header,
  duplicate_window_seconds,
  signature,
}: WebhookRules): FileRules {
  return present({
    deliveryIdPath: delivery_id_path,
    eventHeader: event_header,
    duplicateWindowSeconds: duplicate_window_seconds,
    signature:
      signature &&
      present({
        header: signature.header,
        prefix: signature.prefix,
        algorithm: signature.algorithm,
        encoding: signature.encoding,
        signed: signature.signed,
        idHeader: signature.id_header,
        timestampHeader: signature.timestamp_header,
        maxAgeSeconds: signature.max_age_seconds,
      }),
  });
}
