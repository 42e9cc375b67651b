/** Tests senders that guess URLs and tokens, and a valid sender whose deliveries do not arrive in the order of their events. */
import type { Automation } from '@runyard/contract/automations/automations';
import { beforeEach, describe, expect, test } from 'vitest';
import { openTestService, type TestAnswer } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import { newUid } from '../../../team/access/teams/uid.ts';
import { startWaiting } from '../../../triggers/starts/settle.ts';

const service = await openTestService();
const { deps } = service;
const { db } = deps;
const { factory, base, create, send, log, labels, reset } = await testWebhooks(service);
beforeEach(async () => {
  await db.query('DELETE FROM automations');
  await reset();
});

/** Headers that differ in every answer. */
const ownHeaders = ['date', 'x-request-id', 'keep-alive', 'connection', 'traceparent'];

/** Returns the number of SQL statements for a request, and everything in the answer by which a sender could distinguish webhooks. */
async function observed(ask: () => Promise<TestAnswer<unknown>>) {
  let statements = 0;
  const note = () => {
    statements += 1;
  };
  deps.db.pool.on('acquire', note);
  const { status, headers, body } = await ask();
  deps.db.pool.off('acquire', note);
  // The answers repeat the id and the path of the request.
  const { trace_id: _, instance: __, ...problem } = body as { trace_id?: string; instance?: string };
  return { status, headers: [...headers].filter(([name]) => !ownHeaders.includes(name)), problem, statements };
}

describe('a sender that guesses', () => {
  test('cannot distinguish an unknown URL from the URL of a disabled or deleted webhook', async () => {
    const [disabled, deleted] = [await create(), await create()];
    await service.request('POST', `${base}/${disabled.uid}/disable`);
    await service.request('DELETE', `${base}/${deleted.uid}`);
    const unknown = { ...deleted, url: deleted.url.replace(deleted.uid, newUid()) };
    for (const token of [null, 'wrong', disabled.secret ?? '']) {
      const answers = [];
      for (const webhook of [unknown, disabled, deleted, { ...unknown, url: unknown.url.replace(/.{22}$/, newUid()) }])
        answers.push(await observed(() => send(webhook, { token })));
      expect(answers[0]).toMatchObject({ status: 404, statements: 1 });
      for (const answer of answers) expect(answer).toEqual(answers[0]);
    }
  });

  test.each([
    ['token', {}],
    ['url_token', { auth_mode: 'url_token' }],
    ['signature', { auth_mode: 'signature', signature_scheme: 'github', secret: 'a-secret-of-the-sender' }],
  ])('learns nothing about the right credential from the answers to wrong ones: %s', async (mode, members) => {
    const [webhook, other] = [await create(members), await create(members)];
    const secret = webhook.secret ?? 'a-secret-of-the-sender';
    const guesses = ['x', secret.slice(0, -1), `${secret.slice(0, -1)}~`, `${secret}a`, other.secret ?? 'y'.repeat(24)];
    const ask = (guess: string) => {
      const url = mode === 'url_token' ? webhook.url.replace(secret, guess) : webhook.url;
      const headers = mode === 'signature' ? { 'x-hub-signature-256': `sha256=${guess}` } : {};
      return send({ ...webhook, url }, { token: mode === 'token' ? guess : null, headers });
    };
    // Send one request before the comparison, because a process reads the webhook from the database at the first request.
    await ask('first');
    const answers = [];
    for (const guess of guesses) answers.push(await observed(() => ask(guess)));
    expect(answers[0]).toMatchObject({ status: 401, statements: 1 });
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(new Set(await labels(webhook))).toEqual(new Set(['REJECTED_AUTH']));
  });
});

describe('a sender whose deliveries arrive late', () => {
  const event = (n: number) => ({
    body: JSON.stringify({ order: 7, n }),
    headers: { 'x-service-delivery-id': `e${n}` },
  });
  const automate = async (uid: string, overlap: string) => {
    const triggers = [{ provider: 'webhook', event: 'received', filter: { webhook_ids: [uid] } }];
    const body = { name: overlap, prompt: 'Look.', triggers, overlap, concurrency_key: 'order' };
    return (await service.request<Automation>('POST', `/factory/${factory.uid}/automations`, { body })).body.uid;
  };
  const runsAndReasons = async (webhook: { readonly uid: string }) =>
    (await log(webhook)).map(({ identity, label, automations }) => ({
      identity,
      label,
      runs: automations?.filter(({ run_id: id }) => id !== undefined).length ?? 0,
      reason: automations?.[0]?.reason,
    }));

  test.each([
    ['allow', { runs: 1, reason: undefined }],
    ['skip', { runs: 0, reason: 'skipped: 1 of 1 runs are live' }],
    ['queue', { runs: 0, reason: 'waits: 1 of 1 runs are live' }],
    ['cancel_previous', { runs: 1, reason: undefined }],
  ])('has each delivery handled once with its reason in the log if the overlap is %s', async (overlap, late) => {
    const webhook = await create();
    const automation = await automate(webhook.uid, overlap);
    // The second event arrives before the first event. Then both arrive again.
    for (const n of [2, 1, 2, 1]) expect((await send(webhook, event(n))).status).toBe(202);
    const entries = await runsAndReasons(webhook);
    expect(entries).toEqual([
      { identity: 'e1', label: 'DUPLICATE', runs: 0, reason: undefined },
      { identity: 'e2', label: 'DUPLICATE', runs: 0, reason: undefined },
      { identity: 'e1', label: 'ACCEPTED', ...late },
      { identity: 'e2', label: 'ACCEPTED', runs: 1, reason: undefined },
    ]);
    if (overlap !== 'queue') return;
    await db.query(`UPDATE runs SET state = 'SUCCEEDED' WHERE metadata ->> 'automation_id' = $1`, [automation]);
    await startWaiting(deps);
    await startWaiting(deps);
    expect((await runsAndReasons(webhook)).map(({ runs }) => runs)).toEqual([0, 0, 1, 1]);
  });
});
