/** Test support: senders that sign their deliveries. */
import { createHmac } from 'node:crypto';
import type {
  WebhookDelivery,
  WebhookDeliveryWithPayload,
  WebhookWithSecret,
} from '@runyard/contract/webhooks/webhooks';
import { beforeEach } from 'vitest';
import { openTestService } from './service.ts';
import { type Sent, testWebhooks } from './webhooks.ts';

const secret = 'secret-of-the-sender';
const hmac = (text: string | Uint8Array, algorithm = 'sha256') => createHmac(algorithm, secret).update(text);

/** Opens a service for the tests of a file. Before each test, deletes all automations and webhooks. */
export async function openTestSenders() {
  const service = await openTestService();
  const webhooks = await testWebhooks(service);
  const { base, create, log, reset } = webhooks;
  beforeEach(async () => {
    await service.deps.db.query('DELETE FROM automations');
    await reset();
  });

  return {
    ...webhooks,
    service,
    secret,
    hmac,
    /** Creates a webhook whose deliveries are signed with `secret`. */
    signed: (signature_scheme: string, members: Record<string, unknown> = {}): Promise<WebhookWithSecret> =>
      create({ auth_mode: 'signature', signature_scheme, secret, ...members }),
    asGithub: (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}): Sent => ({
      token: null,
      body,
      headers: { 'x-hub-signature-256': `sha256=${hmac(body).digest('hex')}`, 'x-github-event': 'push', ...headers },
    }),
    asStripe: (body: string, headers: Record<string, string> = {}, at = Math.floor(Date.now() / 1000)): Sent => ({
      token: null,
      body,
      headers: { 'stripe-signature': `t=${at},v1=${hmac(`${at}.${body}`).digest('hex')}`, ...headers },
    }),
    /** Returns the newest entry of a webhook's log. */
    newest: async (webhook: WebhookWithSecret): Promise<WebhookDelivery | undefined> => (await log(webhook))[0],
    payloadOf: async ({ uid }: WebhookWithSecret, id: string) =>
      (await service.request<WebhookDeliveryWithPayload>('GET', `${base}/${uid}/deliveries/${id}`)).body.payload,
  };
}
