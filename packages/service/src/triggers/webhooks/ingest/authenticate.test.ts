import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { sign as signAsGithub } from '@octokit/webhooks-methods';
import { hmacScheme, schemes } from '@runyard/contract/webhooks/signature-schemes/schemes';
import type { HmacSignature } from '@runyard/contract/webhooks/webhook-rules';
import type { SignatureSchemeName } from '@runyard/contract/webhooks/webhooks';
import type { unsignedSchemeNames } from '@runyard/contract/wire/choices';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { describe, expect, test } from 'vitest';
import { hasRecentMember, verifySignature } from './authenticate.ts';

const now = 1_700_000_000;

/** The signature schemes of providers. The form of their signatures is fixed; the form of the scheme `hmac` is part of a webhook. */
type Signing = Exclude<SignatureSchemeName, 'hmac' | (typeof unsignedSchemeNames)[number]>;

const verify = (
  scheme: Signing,
  { headers, body, secrets, at = now }: { headers: IncomingHttpHeaders; body: string; secrets: string[]; at?: number },
) => verifySignature(schemes[scheme], { headers, body: Buffer.from(body) }, secrets, at * 1000);

/** For each scheme a request that the provider documents, or that a library of the provider has signed. */
const vectors: Record<Signing, { headers: IncomingHttpHeaders; body: string; secret: string; at?: number }> = {
  standard_webhooks: {
    // The test vector of the libraries of Standard Webhooks and Svix.
    headers: {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    },
    body: '{"test": 2432232314}',
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    at: 1_614_265_330,
  },
  stripe: {
    headers: {
      'stripe-signature': Stripe.webhooks.generateTestHeaderString({
        payload: '{"id":"evt_1"}',
        secret: 'whsec_stripe',
        timestamp: now,
      }),
    },
    body: '{"id":"evt_1"}',
    secret: 'whsec_stripe',
  },
  github: {
    // https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries#testing-the-webhook-payload-validation
    headers: {
      'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
      'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
    },
    body: 'Hello, World!',
    secret: "It's a Secret to Everybody",
  },
  sentry: {
    // docs.sentry.io: hmac.update(body).digest("hex") with the client secret.
    headers: { 'sentry-hook-signature': hmac('sha256', 'client-secret', '{"action":"created"}'), 'request-id': 'r' },
    body: '{"action":"created"}',
    secret: 'client-secret',
  },
  pagerduty: {
    // developer.pagerduty.com: the header has "v1=" and the HMAC of the body for each secret.
    headers: { 'x-pagerduty-signature': `v1=${'0'.repeat(64)},v1=${hmac('sha256', 'pd', '{"event":{}}')}` },
    body: '{"event":{}}',
    secret: 'pd',
  },
  vercel: {
    // vercel.com/docs: createHmac("sha1", secret).update(rawBody).digest("hex").
    headers: { 'x-vercel-signature': hmac('sha1', 'vercel', '{"type":"deployment"}') },
    body: '{"type":"deployment"}',
    secret: 'vercel',
  },
  slack: {
    // https://docs.slack.dev/authentication/verifying-requests-from-slack
    headers: {
      'x-slack-request-timestamp': '1531420618',
      'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    },
    body: 'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
    secret: '8f742231b10e8888abcd99yyyzzz85a5',
    at: 1_531_420_618,
  },
  bitbucket: {
    // https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/#Examples
    headers: { 'x-hub-signature': 'sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9' },
    body: 'Hello World!',
    secret: "It's a Secret to Everybody",
  },
  jira: {
    // developer.atlassian.com: X-Hub-Signature is the method, "=" and the HMAC of the body.
    headers: { 'x-hub-signature': `sha256=${hmac('sha256', 'jira', '{"webhookEvent":"jira:issue_created"}')}` },
    body: '{"webhookEvent":"jira:issue_created"}',
    secret: 'jira',
  },
  linear: {
    // linear.app/developers: createHmac("sha256", secret).update(rawBody).digest("hex").
    headers: { 'linear-signature': hmac('sha256', 'linear', '{"type":"Issue"}') },
    body: '{"type":"Issue"}',
    secret: 'linear',
  },
  shopify: {
    // shopify.dev: createHmac("sha256", secret).update(rawBody).digest("base64").
    headers: { 'x-shopify-hmac-sha256': createHmac('sha256', 'shpss').update('{"id":1}').digest('base64') },
    body: '{"id":1}',
    secret: 'shpss',
  },
  intercom: {
    // developers.intercom.com: "sha1=" and the HMAC-SHA1 of the body with the client secret.
    headers: { 'x-hub-signature': `sha1=${hmac('sha1', 'client', '{"id":"notif_1"}')}` },
    body: '{"id":"notif_1"}',
    secret: 'client',
  },
  zendesk: {
    // developer.zendesk.com: base64(HMAC-SHA256(timestamp + body)).
    headers: {
      'x-zendesk-webhook-signature-timestamp': '2023-11-14T22:13:20Z',
      'x-zendesk-webhook-signature': createHmac('sha256', 'zen').update('2023-11-14T22:13:20Z{"a":1}').digest('base64'),
    },
    body: '{"a":1}',
    secret: 'zen',
  },
  grafana: {
    headers: { 'x-grafana-alerting-signature': hmac('sha256', 'grafana', '{"status":"firing"}') },
    body: '{"status":"firing"}',
    secret: 'grafana',
  },
  zoom: {
    // developers.zoom.us: "v0=" and the HMAC of v0:TIMESTAMP:BODY.
    headers: {
      'x-zm-request-timestamp': `${now}`,
      'x-zm-signature': `v0=${hmac('sha256', 'zoom', `v0:${now}:{"event":"meeting.ended"}`)}`,
    },
    body: '{"event":"meeting.ended"}',
    secret: 'zoom',
  },
  gitlab: { headers: { 'x-gitlab-token': 'gitlab-token' }, body: '{}', secret: 'gitlab-token' },
};

function hmac(algorithm: string, key: string, text: string): string {
  return createHmac(algorithm, key).update(text).digest('hex');
}

const all = Object.entries(vectors) as [Signing, (typeof vectors)['github']][];
const givenBy = ({ headers, body, secret, at }: (typeof vectors)['github']) => ({
  headers,
  body,
  secrets: [secret],
  ...(at === undefined ? {} : { at }),
});

describe.each(all)('%s', (scheme, vector) => {
  const given = givenBy(vector);

  test('accepts the request of its provider, even if the matching secret is the second of two', () => {
    expect(verify(scheme, given)).toBe(true);
    const older = 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
    expect(verify(scheme, { ...given, secrets: [older, vector.secret] })).toBe(true);
  });

  test('refuses another secret, a missing secret, a missing header and an empty header', () => {
    const empty = Object.fromEntries(Object.keys(vector.headers).map((name) => [name, '']));
    expect(verify(scheme, { ...given, secrets: ['whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'] })).toBe(false);
    expect(verify(scheme, { ...given, secrets: [] })).toBe(false);
    expect(verify(scheme, { ...given, headers: {} })).toBe(false);
    expect(verify(scheme, { ...given, headers: empty })).toBe(false);
  });
});

const signing = all.filter(([scheme]) => schemes[scheme].algorithm !== 'plain');
test.each(signing)('%s refuses a body with a changed byte', (scheme, vector) => {
  expect(verify(scheme, { ...givenBy(vector), body: `${vector.body} ` })).toBe(false);
});

const timed = all.filter(
  ([scheme]) => schemes[scheme].maxAgeSeconds !== undefined && schemes[scheme].timestampMember === undefined,
);
test.each(timed)(
  '%s refuses deliveries with a signed time more than five minutes before or after now',
  (scheme, vector) => {
    const time = vector.at ?? now;
    const at = (shift: number) => verify(scheme, { ...givenBy(vector), at: time + shift });
    expect([-300, 300].map(at)).toEqual([true, true]);
    expect([-301, 301].map(at)).toEqual([false, false]);
  },
);

describe('signatures that libraries of the providers make', () => {
  test('are accepted for Standard Webhooks with both sets of header names, beside other signatures, and with a secret without whsec_', () => {
    const secret = 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    const body = '{"ä": 1}';
    const signature = new StandardWebhook(secret).sign('msg_1', new Date(now * 1000), body);
    for (const prefix of ['webhook', 'svix']) {
      const headers = {
        [`${prefix}-id`]: 'msg_1',
        [`${prefix}-timestamp`]: `${now}`,
        [`${prefix}-signature`]: `v1a,xyz v1,AAAA ${signature}`,
      };
      expect(verify('standard_webhooks', { headers, body, secrets: [`whsec_${secret}`] })).toBe(true);
      expect(verify('standard_webhooks', { headers, body, secrets: [secret] })).toBe(true);
      const renamed = { ...headers, [`${prefix}-id`]: 'msg_2' };
      expect(verify('standard_webhooks', { headers: renamed, body, secrets: [secret] })).toBe(false);
    }
  });

  test('are accepted for GitHub', async () => {
    const body = '{"zen":"Ünicode"}';
    const headers = { 'x-hub-signature-256': await signAsGithub('secret', body) };
    expect(verify('github', { headers, body, secrets: ['secret'] })).toBe(true);
  });

  test('are accepted for Stripe beside other signatures, and are refused if they are marked as v0', () => {
    const body = '{"id":"evt_2"}';
    const header = Stripe.webhooks.generateTestHeaderString({ payload: body, secret: 'whsec_a', timestamp: now });
    const [time, signature] = header.split(',');
    const check = (value: string) =>
      verify('stripe', { headers: { 'stripe-signature': value }, body, secrets: ['whsec_a'] });
    expect(check(`${time},v1=${'0'.repeat(64)},${signature},v0=00`)).toBe(true);
    expect(check(`${time},${signature?.replace('v1', 'v0')}`)).toBe(false);
    expect(check(`t=${now - 1},${signature}`)).toBe(false);
    expect(check(`${signature}`)).toBe(false);
  });
});

test('an id of Standard Webhooks with a dot is refused, because a sender could move text from the timestamp into the id', () => {
  const secret = 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const old = now - 1_000;
  const signature = new StandardWebhook(secret).sign('a', new Date(old * 1000), `${now}.5`);
  const headers = { 'webhook-id': `a.${old}`, 'webhook-timestamp': `${now}`, 'webhook-signature': signature };
  expect(verify('standard_webhooks', { headers, body: '5', secrets: [secret] })).toBe(false);
});

test('only the first ten signatures of a request are compared', () => {
  const body = '{}';
  const right = `v1=${hmac('sha256', 'pd', body)}`;
  const check = (before: number) => {
    const value = [...Array.from({ length: before }, () => 'v1=00'), right].join(',');
    return verify('pagerduty', { headers: { 'x-pagerduty-signature': value }, body, secrets: ['pd'] });
  };
  expect([check(9), check(10)]).toEqual([true, false]);
});

test('a time in the body is read as milliseconds', () => {
  const isRecent = (webhookTimestamp: unknown) => hasRecentMember(schemes.linear, { webhookTimestamp }, now * 1000);
  expect([-300_000, 0, 300_000].map((ms) => isRecent(now * 1000 + ms))).toEqual([true, true, true]);
  expect([now * 1000 - 300_001, now * 1000 + 300_001, now, `${now * 1000}`, undefined].map(isRecent)).not.toContain(
    true,
  );
});

describe('a signature scheme in the settings of a webhook', () => {
  const body = '{"a":1}';
  const check = (signature: HmacSignature, headers: IncomingHttpHeaders, at = now) =>
    verifySignature(hmacScheme(signature), { headers, body: Buffer.from(body) }, ['secret'], at * 1000);

  test('can have any header, prefix, hash and encoding', () => {
    const digest = createHmac('sha512', 'secret').update(body).digest('base64');
    const signature = { header: 'X-Acme-Signature', prefix: 'v1=', algorithm: 'sha512', encoding: 'base64' } as const;
    expect(check(signature, { 'x-acme-signature': `v1=${digest}` })).toBe(true);
    expect(check(signature, { 'x-acme-signature': digest })).toBe(false);
    expect(check({ header: 'X-Acme-Signature' }, { 'x-acme-signature': hmac('sha256', 'secret', body) })).toBe(true);
  });

  test('includes a time and an id in the signed text if its settings name them', () => {
    const signature = {
      header: 'X-Signature',
      signed: '{id}.{timestamp}.{body}',
      id_header: 'X-Id',
      timestamp_header: 'X-Time',
      max_age_seconds: 60,
    };
    const given = {
      'x-id': 'one',
      'x-time': `${now}`,
      'x-signature': hmac('sha256', 'secret', `one.${now}.${body}`),
    };
    expect([check(signature, given), check(signature, given, now + 61)]).toEqual([true, false]);
    expect(check(signature, { ...given, 'x-id': 'two' })).toBe(false);
    expect(check(signature, { ...given, 'x-id': undefined })).toBe(false);
  });
});
