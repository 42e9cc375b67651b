import { Webhook } from 'standardwebhooks';

/**
 * Headers of one attempt. `secrets`: the current one, and the one before it for a while after a rotation; a receiver
 * takes the delivery if any of the signatures is right.
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
