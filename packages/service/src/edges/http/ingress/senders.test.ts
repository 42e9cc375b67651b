/** Deliveries in the form of senders that differ from what most send. */
import type { WebhookWithSecret } from '@runyard/contract/webhooks';
import { beforeEach, describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { type Sent, testWebhooks } from '../../../../test/webhooks.ts';

const service = await openTestService();
const { create, send, labels, reset } = await testWebhooks(service);
beforeEach(reset);

const signed = (signature_scheme: string, members: Record<string, unknown> = {}): Promise<WebhookWithSecret> =>
  create({ auth_mode: 'signature', signature_scheme, secret: 'secret-of-the-sender', ...members });

describe('GitLab', () => {
  const event = (key: string | undefined, uuid: string, body = '{"object_kind":"push"}'): Sent => ({
    token: null,
    body,
    headers: {
      'x-gitlab-token': 'secret-of-the-sender',
      'x-gitlab-event-uuid': uuid,
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
  });

  test.each<[string, Sent[], string[]]>([
    [
      'two events that one request caused, with its UUID',
      [event('k1', 'u'), event('k2', 'u')],
      ['ACCEPTED', 'ACCEPTED'],
    ],
    ['one event that is sent again', [event('k1', 'u1'), event('k1', 'u2')], ['DUPLICATE', 'ACCEPTED']],
    ['an event of GitLab before 17.4 twice', [event(undefined, 'u'), event(undefined, 'u')], ['DUPLICATE', 'ACCEPTED']],
  ])('tells apart %s', async (_name, sent, expected) => {
    const webhook = await signed('gitlab');
    for (const each of sent) expect((await send(webhook, each)).status).toBe(202);
    expect(await labels(webhook)).toEqual(expected);
  });
});
