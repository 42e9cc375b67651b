import { Webhook } from 'standardwebhooks';

/**
 * Returns the signature headers of one attempt. `secrets` holds the current secret and, for 24 h after a rotation, the previous one.
 * A receiver accepts the delivery if one of the signatures is valid.
 */
export function signatureHeaders(
  id: string,
  sentAt: Date,
  body: string,
  secrets: readonly string[],
): Record<string, string> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, sentAt, body)).join(' '),
  };
}
