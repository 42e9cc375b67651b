/** Tests deliveries with signatures, ids and handshakes that few senders use. */
import { describe, expect, test } from 'vitest';
import { openTestSenders } from '../../../../test/senders.ts';
import type { Sent } from '../../../../test/webhooks.ts';

const {
  asGithub,
  asStripe,
  base,
  create,
  factory,
  hmac,
  labels,
  log,
  newest,
  payloadOf,
  secret,
  send,
  service,
  signed,
} = await openTestSenders();

describe('GitLab', () => {
  const event = (key: string | undefined, uuid: string): Sent => ({
    token: null,
    body: '{"object_kind":"push"}',
    headers: {
      'x-gitlab-token': secret,
      'x-gitlab-event-uuid': uuid,
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
  });

  test.each<[string, Sent[], string[]]>([
    ['two events that one request caused', [event('k1', 'u'), event('k2', 'u')], ['ACCEPTED', 'ACCEPTED']],
    ['one event that is sent again', [event('k1', 'u1'), event('k1', 'u2')], ['DUPLICATE', 'ACCEPTED']],
    ['an event of GitLab before 17.4 twice', [event(undefined, 'u'), event(undefined, 'u')], ['DUPLICATE', 'ACCEPTED']],
  ])('tells apart %s', async (_name, sent, expected) => {
    const webhook = await signed('gitlab');
    for (const each of sent) expect((await send(webhook, each)).status).toBe(202);
    expect(await labels(webhook)).toEqual(expected);
  });
});

describe('a replayed delivery whose signature does not cover its id', () => {
  const push = '{"ref":"refs/heads/main","commits":[]}';
  const at = Math.floor(Date.now() / 1000);
  test.each<[string, (id: string) => Sent]>([
    ['github', (id) => asGithub(push, { 'x-github-delivery': id })],
    ['stripe', (id) => asStripe('{"type":"x"}', { 'x-service-delivery-id': id }, at)],
    [
      'pagerduty',
      (id) => ({
        token: null,
        body: '{}',
        headers: { 'x-pagerduty-signature': `v1=${hmac('{}').digest('hex')}`, 'x-service-delivery-id': id },
      }),
    ],
  ])('of %s starts nothing under another id, and the log has the reason', async (scheme, sent) => {
    const webhook = await signed(scheme);
    const first = await send(webhook, sent('one'));
    expect((await send(webhook, sent('two'))).status).toBe(202);
    expect(await newest(webhook)).toMatchObject({
      label: 'DUPLICATE',
      identity: 'two',
      reason: expect.stringMatching(new RegExp(`${first.body.delivery_id}.*once in 300 s`)),
    });
    // Another body with a valid signature is not a duplicate.
    const other = scheme === 'stripe' ? asStripe('{"type":"y"}') : asGithub('{"ref":"refs/heads/x","commits":[]}');
    if (scheme !== 'pagerduty') expect((await send(webhook, other)).status).toBe(202);
    expect((await labels(webhook)).filter((label) => label === 'DUPLICATE')).toHaveLength(1);
  });

  test('starts one run when it is sent twice, also if both arrive together', async () => {
    const webhook = await signed('github');
    const triggers = [{ provider: 'github', event: 'push' }];
    const body = { name: 'Pushes', prompt: 'Look.', triggers };
    expect((await service.request('POST', `/factory/${factory.uid}/automations`, { body })).status).toBe(201);
    const fedByNone = await signed('stripe');
    const ids = ['a', 'b', 'c', 'd'];
    await Promise.all(
      ids.flatMap((id) => [
        send(webhook, asGithub(push, { 'x-github-delivery': id })),
        send(fedByNone, asStripe('{"type":"x"}', { 'x-service-delivery-id': id }, at)),
      ]),
    );
    expect((await log(webhook)).flatMap(({ runs = [] }) => runs)).toHaveLength(1);
    for (const each of [webhook, fedByNone]) {
      const duplicates = (await log(each)).filter(({ label }) => label === 'DUPLICATE');
      expect(duplicates.map(({ reason }) => reason?.includes('had the same signed bytes'))).toEqual([true, true, true]);
    }
  });

  test('counts as a new delivery after the window, or at once if the webhook has no window', async () => {
    const [windowed, without] = [await signed('github'), await signed('github', { duplicate_window_seconds: 0 })];
    for (const webhook of [windowed, without]) await send(webhook, asGithub(push, { 'x-github-delivery': 'one' }));
    await service.deps.db.query("UPDATE webhook_deliveries SET received_at = received_at - interval '301 seconds'");
    for (const webhook of [windowed, without])
      for (const id of ['two', 'three']) await send(webhook, asGithub(push, { 'x-github-delivery': id }));
    expect(await labels(windowed)).toEqual(['DUPLICATE', 'ACCEPTED', 'ACCEPTED']);
    expect(await labels(without)).toEqual(['ACCEPTED', 'ACCEPTED', 'ACCEPTED']);
  });

  test.each<[string, string, Record<string, string>, string, number]>([
    ['an issue as a comment', 'github', { 'x-github-event': 'issue_comment' }, '{"issue":{},"action":"opened"}', 401],
    ['an issue as an issue', 'github', { 'x-github-event': 'issues' }, '{"issue":{},"action":"opened"}', 202],
    ['a new branch as a push', 'github', { 'x-github-event': 'push' }, '{"ref":"x","ref_type":"branch"}', 401],
    ['a body that tells no event', 'github', { 'x-github-event': 'push' }, '{}', 202],
    ['an event that is not compared', 'github', { 'x-github-event': 'star' }, '{"issue":{}}', 202],
    ['an alert of Sentry as an issue', 'sentry', { 'sentry-hook-resource': 'issue' }, '{"data":{"event":{}}}', 401],
  ])('of %s needs a header that fits the body: %s', async (_name, scheme, headers, body, status) => {
    const webhook = await signed(scheme);
    const all = { 'sentry-hook-signature': hmac(body).digest('hex'), ...headers };
    expect((await send(webhook, asGithub(body, all))).status).toBe(status);
    if (status === 401)
      expect(await newest(webhook)).toMatchObject({
        label: 'REJECTED_AUTH',
        reason: expect.stringContaining('the signed body is of another event'),
      });
  });
});

test('a header that a webhook uses in place of the GitHub header must not contradict the body', async () => {
  const webhook = await signed('github', { event_header: 'X-Relayed-Event' });
  const status = async (event: string) =>
    (await send(webhook, asGithub('{"issue":{}}', { 'x-relayed-event': event }))).status;
  expect([await status('push'), await status('issues')]).toEqual([401, 202]);
});

describe('a sender without a scheme of its own', () => {
  test('signs as the webhook declares', async () => {
    const signature = { header: 'X-Acme-Signature', prefix: 'sha1=', algorithm: 'sha1', encoding: 'base64' };
    const webhook = await signed('hmac', { signature, delivery_id_header: 'X-Request-UUID' });
    expect(webhook.signature).toEqual(signature);
    const given = (value: string): Sent => ({
      token: null,
      headers: { 'x-acme-signature': value, 'x-request-uuid': 'r-77' },
    });
    expect((await send(webhook, given(`sha1=${hmac('{}', 'sha1').digest('base64')}`))).status).toBe(202);
    expect((await send(webhook, given(`sha1=${hmac('{}').digest('base64')}`))).status).toBe(401);
    expect(await log(webhook)).toMatchObject([{ label: 'REJECTED_AUTH' }, { label: 'ACCEPTED', identity: 'r-77' }]);
    const patch = { body: { signature: { header: 'X-Acme-Signature', signed: '{body}!' } } };
    expect((await service.request('PATCH', `${base}/${webhook.uid}`, patch)).status).toBe(200);
    expect((await send(webhook, given(hmac('{}!').digest('hex')))).status).toBe(202);
  });

  test.each([
    ['signature', { signature_scheme: 'hmac' }],
    ['signature', { signature_scheme: 'github', signature: { header: 'X' } }],
    ['signature.signed', { signature_scheme: 'hmac', signature: { header: 'X', signed: 'x' } }],
    ['signature.signed', { signature_scheme: 'hmac', signature: { header: 'X', signed: '{timestamp}{body}' } }],
    ['signature.signed', { signature_scheme: 'hmac', signature: { header: 'X', timestamp_header: 'T' } }],
    [
      'signature.signed',
      { signature_scheme: 'hmac', signature: { header: 'X', signed: '{id}{body}', id_header: 'I' } },
    ],
    ['signature.signed', { signature_scheme: 'hmac', signature: { header: 'X', max_age_seconds: 5 } }],
    ['signature_scheme', { signature_scheme: 'sns' }],
    ['event_header', { signature_scheme: 'github', event_header: 'Authorization' }],
    ['delivery_id_path', { signature_scheme: 'github', delivery_id_path: 'a..b' }],
  ])('gets a 400 for a wrong %s: %j', async (member, members) => {
    const body = { name: 'W', auth_mode: 'signature', secret, ...members };
    const answer = await service.request<{ errors: { path: string }[] }>('POST', base, { body });
    expect([answer.status, answer.body.errors?.map(({ path }) => path)]).toEqual([400, [member]]);
  });

  test('sends its token as the password of Basic', async () => {
    const webhook = await create();
    const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });
    const status = async (text: string) => (await send(webhook, { token: null, headers: basic(text) })).status;
    expect(await Promise.all([`any:${webhook.secret}`, `:${webhook.secret}`].map(status))).toEqual([202, 202]);
    const asked = await send(webhook, { token: null });
    expect(asked.headers.get('www-authenticate')).toContain('Basic realm=');
    const wrong = [`${webhook.secret}:`, `a:b:${webhook.secret}`, `a:${webhook.secret} `, ':', ''];
    expect(await Promise.all(wrong.map(status))).toEqual([401, 401, 401, 401, 401]);
  });
});

describe('a handshake', () => {
  const grid = JSON.stringify([
    {
      id: '1',
      eventType: 'Microsoft.EventGrid.SubscriptionValidationEvent',
      data: { validationCode: '512d38b6-c7b8-40c8-89fe-f46f9e9622b6' },
    },
  ]);
  const byUrl = (signature_scheme: string) => create({ auth_mode: 'url_token', signature_scheme });

  test('of Event Grid gets its code in the answer, but only from a webhook for Event Grid', async () => {
    const [webhook, other] = [await byUrl('event_grid'), await create({ auth_mode: 'url_token' })];
    const answer = await send(webhook, { token: null, body: grid });
    expect([answer.status, answer.body]).toEqual([200, { validationResponse: '512d38b6-c7b8-40c8-89fe-f46f9e9622b6' }]);
    expect((await send(other, { token: null, body: grid })).status).toBe(202);
    expect((await send({ ...webhook, url: `${webhook.url}x` }, { token: null, body: grid })).status).toBe(401);
    expect((await send(webhook, { token: null, body: '[{"eventType":"Microsoft.Storage.BlobCreated"}]' })).status).toBe(
      202,
    );
  });

  test('of Zoom gets the token and its HMAC', async () => {
    const webhook = await signed('zoom');
    const body = '{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"}}';
    const at = Math.floor(Date.now() / 1000);
    const signature = `v0=${hmac(`v0:${at}:${body}`).digest('hex')}`;
    const headers = { 'x-zm-request-timestamp': String(at), 'x-zm-signature': signature };
    const answer = await send(webhook, { token: null, body, headers });
    const encryptedToken = hmac('qgg8vlvZRS6UYooatFL8Aw').digest('hex');
    expect([answer.status, answer.body]).toEqual([200, { plainToken: 'qgg8vlvZRS6UYooatFL8Aw', encryptedToken }]);
    expect((await send(webhook, { token: null, body })).status).toBe(401);
  });

  test('of Microsoft Graph needs the token, and gets its text in the answer as plain text', async () => {
    const webhook = await byUrl('microsoft_graph');
    const url = `${webhook.url}?validationToken=${encodeURIComponent('Validation: <b>&</b> ü')}`;
    const answer = await send({ ...webhook, url }, { token: null, body: '' });
    expect([answer.status, answer.text, answer.headers.get('content-type')]).toEqual([
      200,
      'Validation: <b>&</b> ü',
      'text/plain; charset=utf-8',
    ]);
    const [entry] = await log(webhook);
    expect(await payloadOf(webhook, entry?.delivery_id ?? '')).toEqual({ validationToken: 'Validation: <b>&</b> ü' });
    expect((await send({ ...webhook, url: url.replace('?', 'x?') }, { token: null, body: '' })).status).toBe(401);
    const other = await create({ auth_mode: 'url_token' });
    expect((await send({ ...other, url: `${other.url}?validationToken=a` }, { token: null, body: '' })).status).toBe(
      400,
    );
  });

  test('of SNS is confirmed by a person, and its messages can be filtered', async () => {
    const webhook = await byUrl('sns');
    const filter = { webhook_ids: [webhook.uid], payload: { Message: { NewStateValue: ['ALARM'] } } };
    const automation = { name: 'A', prompt: 'Look.', triggers: [{ provider: 'webhook', event: 'received', filter }] };
    await service.request('POST', `/factory/${factory.uid}/automations`, { body: automation });
    const SubscribeURL = `${service.baseUrl}/api/v1/never-fetched`;
    const body = JSON.stringify({ Type: 'SubscriptionConfirmation', MessageId: 'm1', Token: 't', SubscribeURL });
    const headers = { 'content-type': 'text/plain; charset=UTF-8' };
    expect((await send(webhook, { token: null, body, headers })).status).toBe(202);
    expect(await newest(webhook)).toMatchObject({
      identity: 'm1',
      reason: expect.stringContaining('open SubscribeURL'),
    });
    expect(service.logged.join('')).not.toContain('never-fetched');
    const message =
      '{"Type":"Notification","MessageId":"m2","Message":"{\\"AlarmName\\":\\"disk\\",\\"NewStateValue\\":\\"ALARM\\"}"}';
    const answer = await send(webhook, { token: null, body: message, headers });
    expect(await newest(webhook)).toMatchObject({ identity: 'm2', runs: [expect.any(String)] });
    const stored = await service.request('GET', `${base}/${webhook.uid}/deliveries/${answer.body.delivery_id}/payload`);
    expect(stored.text).toBe(message);
    const trial = { filter: filter.payload, delivery_id: answer.body.delivery_id };
    const tried = await service.request('POST', `/factory/${factory.uid}/automations/test-filter`, { body: trial });
    expect(tried.body).toMatchObject({ would_trigger: true });
  });
});
