/** Tests that the command forwards deliveries of a real service to a program, which is a server of the test. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import http, { type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { sign as signAsGithub, verify as verifyAsGithub } from '@octokit/webhooks-methods';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { beforeEach, describe, expect, test } from 'vitest';
import { closeAtEnd, newFolder } from '../../../../../test/support/close-at-end.ts';
import { openTestService } from '../../../../service/test/service.ts';
import { type Sent, testWebhooks } from '../../../../service/test/webhooks.ts';
import { createContext } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { listenToWebhook } from './listen.ts';

const service = await openTestService();
const { base, create, send, reset } = await testWebhooks(service);
beforeEach(reset);
const folder = newFolder();

interface Got {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}
const got: Got[] = [];
let answer: { readonly status: number; readonly text?: string; readonly headers?: Record<string, string> };
beforeEach(() => {
  got.length = 0;
  answer = { status: 204 };
});
const program = closeAtEnd(
  http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    got.push({ headers: request.headers, body: Buffer.concat(chunks).toString('utf8') });
    response.writeHead(answer.status, answer.text ?? 'OK', answer.headers ?? {}).end(answer.text);
  }),
);
program.listen(0, '127.0.0.1');
await once(program, 'listening');
const to = `http://127.0.0.1:${(program.address() as AddressInfo).port}/hook`;

type Webhook = Awaited<ReturnType<typeof create>>;

/**
 * Runs the command until it has forwarded `count` deliveries. Calls `whenReady` when the command has begun to listen. Returns the output
 * of the command.
 */
async function listen(webhook: Webhook, whenReady: () => Promise<unknown>, { count = 1, secretFile = '' } = {}) {
  const reports: string[] = [];
  const lines: string[] = [];
  let ready: Promise<unknown> | undefined;
  const report = (text: string) => {
    reports.push(text);
    // When the command has printed its second report, it listens.
    if (reports.length === 2) ready = whenReady();
  };
  const out = (text: string) => {
    lines.push(text);
    if (lines.length === count) throw new Failure('enough');
  };
  const env = { RUNYARD_BASE_URL: service.baseUrl, RUNYARD_API_KEY: service.key };
  const options = { to, ...(secretFile === '' ? {} : { secretFile }) };
  await expect(listenToWebhook({ ...createContext(env), out, report }, webhook.uid, options)).rejects.toThrow('enough');
  await ready;
  const secret = /(\S+)$/.exec(reports[1] ?? '')?.[1] ?? '';
  return { reports, lines, secret };
}

/**
 * JSON that would change if a program parsed it and wrote it again: it has numbers above 2^53, two equal keys, white space, and text that
 * is not ASCII.
 */
const body = '{ "n": 12345678901234567890, "n":1e999,\r\n\t"a" : "\\u00e4ä\\ud800" }\n';

const signed = (scheme: string, secret: string) => ({ auth_mode: 'signature', signature_scheme: scheme, secret });
const standardSecret = `whsec_${randomBytes(24).toString('base64')}`;

interface Sender {
  readonly webhook: Record<string, unknown>;
  readonly sent: () => Promise<Sent>;
  readonly kept: Record<string, string>;
  /** Verifies a forwarded delivery in the same way as a receiving program. Throws or returns false if the delivery is not valid. */
  readonly check: (delivery: Got, secret: string) => unknown;
}

const headerOf = ({ headers }: Got, name: string): string => String(headers[name]);

const senders: Record<string, Sender> = {
  github: {
    webhook: signed('github', 'secret-of-github'),
    sent: async () => ({
      headers: {
        'x-hub-signature-256': await signAsGithub('secret-of-github', body),
        'x-github-event': 'push',
        'x-github-delivery': 'g-1',
        'x-github-hook-id': '7',
        'content-type': 'application/json; charset=utf-8',
      },
    }),
    kept: {
      'x-github-event': 'push',
      'x-github-delivery': 'g-1',
      'x-github-hook-id': '7',
      'content-type': 'application/json; charset=utf-8',
    },
    check: (delivery, secret) => verifyAsGithub(secret, delivery.body, headerOf(delivery, 'x-hub-signature-256')),
  },
  stripe: {
    webhook: signed('stripe', 'whsec_of_stripe'),
    sent: async () => ({
      headers: {
        'stripe-signature': Stripe.webhooks.generateTestHeaderString({ payload: body, secret: 'whsec_of_stripe' }),
      },
    }),
    kept: {},
    check: (delivery, secret) =>
      Stripe.webhooks.signature?.verifyHeader(delivery.body, headerOf(delivery, 'stripe-signature'), secret, 300),
  },
  svix: {
    webhook: signed('standard_webhooks', standardSecret),
    sent: async () => {
      const now = new Date();
      return {
        headers: {
          'svix-id': 'msg_1',
          'svix-timestamp': `${Math.floor(now.getTime() / 1000)}`,
          'svix-signature': new StandardWebhook(standardSecret).sign('msg_1', now, body),
        },
      };
    },
    kept: { 'svix-id': 'msg_1' },
    check: ({ headers, body: text }, secret) => {
      const standard = ['id', 'timestamp', 'signature'].map((name) => [
        `webhook-${name}`,
        String(headers[`svix-${name}`]),
      ]);
      return new StandardWebhook(secret).verify(text, Object.fromEntries(standard));
    },
  },
  gitlab: {
    webhook: signed('gitlab', 'token-of-gitlab-project'),
    sent: async () => ({ headers: { 'x-gitlab-token': 'token-of-gitlab-project', 'x-gitlab-event': 'Push Hook' } }),
    kept: { 'x-gitlab-event': 'Push Hook' },
    check: (delivery, secret) => delivery.headers['x-gitlab-token'] === secret,
  },
  'a bearer token': {
    webhook: { delivery_id_header: 'X-Ci-Run' },
    sent: async () => ({ headers: { 'x-ci-run': '17', 'x-api-key': 'of-a-proxy', cookie: 'a=of-a-proxy' } }),
    kept: { 'x-ci-run': '17' },
    check: (delivery, secret) => delivery.headers.authorization === `Bearer ${secret}`,
  },
};

describe('a forwarded delivery', () => {
  test.each(Object.entries(senders))(
    'has the same bytes and headers and a valid signature of the scheme %s',
    async (name, { webhook: members, sent, kept, check }) => {
      const webhook = await create(members);
      const isToken = members.auth_mode === undefined;
      const { secret, lines, reports } = await listen(webhook, async () => {
        const { status } = await send(webhook, { body, ...(isToken ? {} : { token: null }), ...(await sent()) });
        expect(status).toBe(202);
      });
      const [delivery] = got;
      if (!delivery) throw new Error('nothing was forwarded');
      expect([name, delivery.body]).toEqual([name, body]);
      expect(delivery.headers).toMatchObject(kept);
      expect(lines[0]).toMatch(/^[0-9a-f-]{36} 204\n$/);
      expect(await check(delivery, secret)).not.toBe(false);
      const secrets = [members.secret, webhook.secret, 'of-a-proxy'].filter((each) => typeof each === 'string');
      for (const each of secrets) expect(JSON.stringify([delivery.headers, reports])).not.toContain(each);
    },
  );

  test('is signed with the secret of --secret-file, which is not printed', async () => {
    const webhook = await create(senders.stripe?.webhook);
    const secretFile = path.join(folder, 'secret');
    writeFileSync(secretFile, 'whsec_local\n');
    const sent = await senders.stripe?.sent();
    const { reports } = await listen(webhook, () => send(webhook, { body, token: null, ...sent }), { secretFile });
    expect(reports.join()).not.toContain('whsec_local');
    expect(senders.stripe?.check(got[0] as Got, 'whsec_local')).toBe(true);
  });

  test('can be a replay or commit late, but is never of another webhook or older than the start of the command', async () => {
    const [webhook, other] = [await create(), await create()];
    const { delivery_id: before } = (await send(webhook, { body: '"before"' })).body;
    const { lines } = await listen(
      webhook,
      async () => {
        await send(other, { body: '"other"' });
        const { delivery_id: first } = (await send(webhook, { body: '"first"' })).body;
        await expect.poll(() => got.length).toBe(1);
        // This delivery appears after the first delivery but has an older id, as if it had arrived first and its transaction had committed
        // later.
        const late = `${first.slice(0, -12)}000000000000`;
        await service.deps.db.query(
          `INSERT INTO webhook_deliveries (id, webhook_uid, team_id, label, size_bytes, payload) SELECT '${late}', uid, team_id, 'ACCEPTED', 6, '"late"' FROM webhooks WHERE uid = $1`,
          [webhook.uid],
        );
        await expect.poll(() => got.length).toBe(2);
        await service.request('POST', `${base}/${webhook.uid}/deliveries/${before}/replay`);
      },
      { count: 3 },
    );
    expect(got.map((each) => each.body)).toEqual(['"first"', '"late"', '"before"']);
    expect(lines).toHaveLength(3);
  });

  test('is not sent to the target of a redirect', async () => {
    const webhook = await create();
    answer = { status: 302, headers: { location: `${to}/elsewhere` } };
    const { lines } = await listen(webhook, () => send(webhook));
    expect([lines[0]?.trim().split(' ')[1], got.length]).toEqual(['302', 1]);
  });

  test('cannot print control characters to the terminal, and the answer of the receiving program cannot either', async () => {
    const webhook = await create({ name: 'W \u001b[2J' });
    answer = { status: 418, text: 'I am a teapot' };
    const { lines, reports } = await listen(webhook, () =>
      send(webhook, { body: '"\\u001b[2J"', headers: { 'x-service-delivery-id': '\u009b31m' } }),
    );
    expect(lines[0]).toMatch(/^[0-9a-f-]{36} 418\n$/);
    expect([...lines, ...reports].join('')).not.toMatch(/(?!\n)\p{Cc}/u);
  });
});
