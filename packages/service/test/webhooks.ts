/** Test support: creates a factory with webhooks, and sends deliveries to them. */
import type { Factory } from '@runyard/contract/factories/factories';
import type {
  ListWebhookDeliveriesResponse,
  WebhookDelivery,
  WebhookWithSecret,
} from '@runyard/contract/webhooks/webhooks';
import type { TestAnswer, TestService } from './service.ts';

export interface Sent {
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly headers?: Record<string, string>;
  /** The bearer token of the request. Null: no token. Default: the secret of the webhook. */
  readonly token?: string | null;
  readonly method?: string;
}

/** Returns functions that create webhooks in one factory of the first team and send deliveries to them. */
export async function testWebhooks(service: TestService) {
  const factory = (await service.request<Factory>('POST', '/factory', { body: { name: 'Test' } })).body;
  const base = `/factory/${factory.uid}/webhooks`;

  const create = async (body: Record<string, unknown> = {}): Promise<WebhookWithSecret> => {
    const answer = await service.request<WebhookWithSecret>('POST', base, { body: { name: 'W', ...body } });
    if (answer.status !== 201) throw new Error(answer.text);
    return answer.body;
  };

  const send = async (
    webhook: Pick<WebhookWithSecret, 'url' | 'secret'>,
    { body = '{}', headers = {}, token = webhook.secret ?? null, method = 'POST' }: Sent = {},
  ): Promise<TestAnswer<{ delivery_id: string }>> =>
    await service.request(method, webhook.url, {
      key: null,
      headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...headers },
      ...(method === 'GET' ? {} : { raw: body }),
    });

  const log = async ({ uid }: Pick<WebhookWithSecret, 'uid'>, query = ''): Promise<WebhookDelivery[]> =>
    (await service.request<ListWebhookDeliveriesResponse>('GET', `${base}/${uid}/deliveries${query}`)).body.deliveries;

  const labels = async (webhook: Pick<WebhookWithSecret, 'uid'>): Promise<string[]> =>
    (await log(webhook, '?limit=100')).map(({ label }) => label);

  /** Empties the tables, so that limits which one test has used up do not affect the next test. */
  const reset = () => service.deps.db.query('DELETE FROM webhooks');

  return { factory, base, create, send, log, labels, reset };
}
