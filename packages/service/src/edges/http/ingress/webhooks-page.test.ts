/** Runs the commands of docs/webhooks.md, and sends deliveries in the form of the providers to its webhooks. */
import { execFile } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { sign as signAsGithub } from '@octokit/webhooks-methods';
import type { Factory } from '@runyard/contract/factories/factories';
import type { ListWebhookDeliveriesResponse, Webhook } from '@runyard/contract/webhooks/webhooks';
import Stripe from 'stripe';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { findTeamSecret } from '../../../team/stored-secrets/find-usable.ts';

const service = await openTestService();
const { db, vault } = service.deps;
const page = readFileSync(path.resolve(import.meta.dirname, '../../../../../../docs/webhooks.md'), 'utf8');
const steps = [...page.matchAll(/^```sh\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?/gms)].map(
  ([, command = '', prints = '']) => ({ command, prints }),
);

const outputs: string[] = [];
const script = `exec 2>&1\n${steps.map(({ command }) => `${command}\nprintf '\\036'`).join('\n')}`;
const env = { PATH: process.env.PATH ?? '', RUNYARD_BASE_URL: service.baseUrl, RUNYARD_API_KEY: service.key };
const { stdout } = await promisify(execFile)('bash', ['-c', script], { env });
outputs.push(...stdout.split('\x1e'));

test('the commands print the output of the page', () => {
  expect(steps.length).toBeGreaterThan(5);
  for (const [index, { command, prints }] of steps.entries())
    expect.soft(outputs[index]?.trim(), command).toBe(prints.trim());
});

const hmac = (key: string, text: string, encoding: 'hex' | 'base64' = 'hex') =>
  createHmac('sha256', key).update(text).digest(encoding);
const seconds = () => Math.floor(Date.now() / 1000);

/** Deliveries as the providers send them; `id` is the id that the provider repeats with a delivery. */
const providers: Record<
  string,
  {
    payload: object;
    sign: (body: string, secret: string, id: string) => Record<string, string> | Promise<Record<string, string>>;
  }
> = {
  alerts: {
    payload: { status: 'firing' },
    sign: (_body, secret, id) => ({ authorization: `Bearer ${secret}`, 'x-service-delivery-id': id }),
  },
  github: {
    payload: { ref: 'refs/heads/main', repository: { full_name: 'acme/billing' }, commits: [] },
    sign: async (body, secret, id) => ({
      'x-hub-signature-256': await signAsGithub(secret, body),
      'x-github-event': 'push',
      'x-github-delivery': id,
    }),
  },
  stripe: {
    payload: { type: 'charge.dispute.created' },
    sign: (payload, secret) => ({ 'stripe-signature': Stripe.webhooks.generateTestHeaderString({ payload, secret }) }),
  },
  sentry: {
    payload: { action: 'created', data: { issue: { level: 'error' } } },
    sign: (body, secret, id) => ({
      'sentry-hook-resource': 'issue',
      'sentry-hook-signature': hmac(secret, body),
      'request-id': id,
    }),
  },
  pagerduty: {
    payload: { event: { event_type: 'incident.triggered' } },
    sign: (body, secret) => ({ 'x-pagerduty-signature': `v1=${hmac(secret, body)}` }),
  },
  bitbucket: {
    payload: { actor: { nickname: 'ann' } },
    sign: (body, secret, id) => ({
      'x-hub-signature': `sha256=${hmac(secret, body)}`,
      'x-event-key': 'pullrequest:approved',
      'x-request-uuid': id,
    }),
  },
  jira: {
    payload: { webhookEvent: 'jira:issue_created' },
    sign: (body, secret, id) => ({
      'x-hub-signature': `sha256=${hmac(secret, body)}`,
      'x-atlassian-webhook-identifier': id,
    }),
  },
  linear: {
    payload: { action: 'create', type: 'Issue', webhookTimestamp: Date.now() },
    sign: (body, secret, id) => ({
      'linear-signature': hmac(secret, body),
      'linear-event': 'Issue',
      'linear-delivery': id,
    }),
  },
  shopify: {
    payload: { total_price: '4000.00' },
    sign: (body, secret, id) => ({
      'x-shopify-hmac-sha256': hmac(secret, body, 'base64'),
      'x-shopify-topic': 'orders/create',
      'x-shopify-webhook-id': id,
    }),
  },
  intercom: {
    payload: { topic: 'conversation.user.created' },
    sign: (body, secret) => ({
      'x-hub-signature': `sha1=${createHmac('sha1', secret).update(body).digest('hex')}`,
    }),
  },
  zendesk: {
    payload: { ticket: { id: 8 } },
    sign: (body, secret, id) => {
      const time = new Date().toISOString();
      return {
        'x-zendesk-webhook-signature-timestamp': time,
        'x-zendesk-webhook-signature': hmac(secret, time + body, 'base64'),
        'x-zendesk-webhook-invocation-id': id,
      };
    },
  },
  grafana: {
    payload: { status: 'firing' },
    sign: (body, secret) => ({ 'x-grafana-alerting-signature': hmac(secret, body) }),
  },
  acme: {
    payload: { event: { id: 'refund-2' } },
    sign: (body, secret) => {
      const at = seconds();
      return {
        'x-acme-time': String(at),
        'x-acme-signature': `v1=${hmac(secret, `${at}:${body}`)}`,
        'x-acme-event': 'refund.created',
      };
    },
  },
  zoom: {
    payload: { event: 'meeting.ended' },
    sign: (body, secret) => {
      const at = seconds();
      return { 'x-zm-request-timestamp': String(at), 'x-zm-signature': `v0=${hmac(secret, `v0:${at}:${body}`)}` };
    },
  },
};

describe.each(Object.entries(providers))('a delivery as %s sends it', (name, { payload, sign }) => {
  test('starts one run even if the delivery is repeated, and no run if it is signed with another secret', async () => {
    const [factory] = (await service.ok<{ factories: Factory[] }>('GET', '/factory?search=Operations')).factories;
    const base = `/factory/${factory?.uid}/webhooks`;
    const { webhooks } = await service.ok<{ webhooks: Webhook[] }>('GET', base);
    const webhook = webhooks.find((each) => each.name === name);
    const secret = await findTeamSecret(db, vault, service.teamId, webhook?.secret_name ?? '');
    if (!webhook || secret === null || secret === 'unreadable') throw new Error(`the page makes no webhook ${name}`);
    const id = randomUUID();
    const body = JSON.stringify({ ...payload, id });
    const send = async (by: string) =>
      (await service.request('POST', webhook.url, { key: null, headers: await sign(body, by, id), raw: body })).status;
    expect(await send('the-secret-of-someone-else')).toBe(401);
    expect(await send(secret.value)).toBe(202);
    expect(await send(secret.value)).toBe(202);
    const log = await service.ok<ListWebhookDeliveriesResponse>('GET', `${base}/${webhook.uid}/deliveries?limit=3`);
    expect(log.deliveries.map(({ label, runs = [] }) => [label, runs.length])).toEqual([
      ['DUPLICATE', 0],
      ['ACCEPTED', 1],
      ['REJECTED_AUTH', 0],
    ]);
  });
});
