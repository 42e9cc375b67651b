/** Tests the `Idempotency-Key` on all routes that create something. */

import { routes } from '@runyard/contract/routes';
import type { Route } from '@runyard/contract/wire/route';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { runId, runToken } = await service.startExecution();

/** Two different bodies for each route that creates something. */
const bodies: Record<string, readonly [object, object]> = {
  createRun: [{ prompt: 'a' }, { prompt: 'b' }],
  createRunDeprecated: [{ prompt: 'a' }, { prompt: 'b' }],
  rerunRun: [{ title: 'a' }, { title: 'b' }],
  sendFollowup: [{ message: 'a' }, { message: 'b' }],
  prepareRunAttachments: [
    { files: [{ filename: 'a', mime_type: 'text/plain' }] },
    { files: [{ filename: 'b', mime_type: 'text/plain' }] },
  ],
  createEnvironment: [{ config: { name: 'a' } }, { config: { name: 'b' } }],
  createKey: [
    { name: 'a', kind: 'personal' },
    { name: 'b', kind: 'personal' },
  ],
  reportArtifact: [
    { artifact_type: 'PLAN', data: { title: 'a' } },
    { artifact_type: 'PLAN', data: { title: 'b' } },
  ],
};

/** POST routes that need no Idempotency-Key, because a repeated request creates nothing twice. */
const creatingNothing = [
  'cancelRun',
  'interruptRun',
  'interruptConversation',
  'renameConversation',
  'cancelChildRun',
  'shareArtifact',
  // Returns the same link again.
  'shareEnvironment',
  'rotateEventSubscriptionSecret',
  'redeliverEvent',
  'resolvePrompt',
  'reportEvents',
  'finishTask',
  // A report replaces the previous report.
  'reportChanges',
  'uploadSnapshot',
  'reportShutdown',
  // A result replaces the previous result of the turn.
  'submitResult',
  // A check has one run for each attempt.
  'startFreshCheck',
  'cancelFreshCheck',
  // A branch has at most one open pull request.
  'openPullRequest',
  // The same request of a run writes once.
  'answerOnGithub',
  // Repeated requests about a connection wait for the same decision.
  'holdConnection',
  // A code has no effect until it is exchanged, and is valid for a minute.
  'createSignInCode',
  // A code can be exchanged once.
  'readSignInCode',
  'createBrowserSession',
  // A question for an authenticator has no effect until it is answered, and is answered once.
  'startPasskeySignIn',
  'startPasskey',
  'startInvitedPasskey',
  'createPasskey',
  // A sign-in has no effect until the provider answers.
  'startSignOn',
  // An invitation can be used once.
  'readTeamInvitation',
  'acceptTeamInvitation',
  'joinTeam',
  'acceptEnvironmentInvitation',
  'declineEnvironmentInvitation',
  // A revision can be accepted once.
  'accept',
  'pauseSchedule',
  'resumeSchedule',
  'previewSchedule',
  'testFilter',
  'testFilterOnDeliveries',
  'dryRunAutomation',
  'simulateDelivery',
  'rotateWebhookSecret',
  'enableWebhook',
  'disableWebhook',
  // A second sync of the same commit changes nothing.
  'syncFactorySource',
  'validateFactoryFiles',
  'planFactoryDefinition',
  // A second request gets a conflict, because the team has a factory of this name.
  'createFactoryFromFiles',
  // A second rollback has the same files and variables; `expected_version` refuses it.
  'rollBackDefinition',
  'cancelFactoryTask',
  // A run keeps each event once, by its UUID.
  // Sends a request that costs nothing, and stores nothing.
  'readNotifications',
  'unreadNotifications',
  'dismissNotifications',
  'restoreNotifications',
  'testModelProvider',
  'reportClientEvent',
  // A second request gets a conflict, because the team has the App.
  'createGithubApp',
  'planGithubApp',
  // GitHub accepts each code once.
  'convertGithubApp',
  'authorizeGithub',
  'finishGithubAuthorization',
  // Repeats each failed run once.
  'rerunFailedRuns',
];

const posts = (Object.entries(routes) as [string, Route][]).filter(([, route]) => route.method === 'POST');

test('each POST route is in the list of routes that honour the Idempotency-Key, or in the list of routes that create nothing twice', () => {
  const idempotent = posts.filter(([, route]) => route.once !== undefined).map(([name]) => name);
  const others = posts.filter(([, route]) => route.once === undefined).map(([name]) => name);
  expect(idempotent).toEqual(expect.arrayContaining(Object.keys(bodies)));
  expect(creatingNothing).toEqual(expect.arrayContaining(others));
});

/** Returns the body of an answer without the end of its signed URLs: an answer that is repeated has new URLs, which can still be used. */
const shown = ({ text }: { readonly text: string }): unknown =>
  JSON.parse(text.replaceAll(/\?expires=[0-9]+&signature=[\w-]+/g, ''));

describe.each(posts.filter(([name]) => name in bodies))('%s', (name, route) => {
  const [body = {}, otherBody = {}] = bodies[name] ?? [];
  const send = (idempotencyKey: string | null, sent: object = body, key?: string) =>
    service.request('POST', route.path.replace('{runId}', runId), {
      key: key ?? ('run' in route.allow ? runToken : service.key),
      body: sent,
      headers: idempotencyKey === null ? {} : { 'idempotency-key': idempotencyKey },
    });
  const rows = async () => {
    const [row] = await service.deps.db.query<{ rows: number }>(
      `SELECT ((SELECT count(*) FROM runs) + (SELECT count(*) FROM environments) + (SELECT count(*) FROM api_keys)
         + (SELECT count(*) FROM artifacts) + (SELECT count(*) FROM followups) + (SELECT count(*) FROM prepared_attachments))::int AS rows`,
    );
    return row?.rows ?? 0;
  };

  test('returns the first answer for the same key and body, and creates once', async () => {
    const before = await rows();
    const first = await send(`${name}-same`);
    expect(first.status, first.text).toBe(route.answer.status);
    const second = await send(`${name}-same`);
    expect([second.status, shown(second)]).toEqual([first.status, shown(first)]);
    expect(await rows()).toBe(before + 1);
  });

  test('creates once for concurrent requests', async () => {
    const before = await rows();
    const answers = await Promise.all(Array.from({ length: 5 }, () => send(`${name}-at-once`)));
    for (const answer of answers) {
      expect([answer.status, shown(answer)]).toEqual([route.answer.status, answers[0] && shown(answers[0])]);
    }
    expect(await rows()).toBe(before + 1);
  });

  test('answers 409 for the same key with another body, and creates nothing', async () => {
    await send(`${name}-other`);
    const before = await rows();
    const answer = await send(`${name}-other`, otherBody);
    expect(answer).toMatchObject({ status: 409, body: { error_code: 'conflict' } });
    expect(await rows()).toBe(before);
  });

  test('answers 400 for an invalid key, and creates again without a key and after 24 hours', async () => {
    expect((await send('a b')).status).toBe(400);
    expect((await send('a'.repeat(256))).status).toBe(400);
    const before = await rows();
    await send(null);
    await send(null);
    await send(`${name}-day`);
    const age = (hours: number) =>
      service.deps.db.query(
        `UPDATE idempotency_keys SET created_at = now() - make_interval(hours => $1) WHERE key = $2`,
        [hours, `${name}-day`],
      );
    await age(23);
    await send(`${name}-day`);
    expect(await rows()).toBe(before + 3);
    await age(25);
    expect((await send(`${name}-day`, otherBody)).status).toBe(route.answer.status);
    expect(await rows()).toBe(before + 4);
  });

  if ('user' in route.allow) {
    test('creates once for each of two callers with the same Idempotency-Key', async () => {
      const before = await rows();
      await send(`${name}-shared`);
      const other = await send(`${name}-shared`, otherBody, await service.newKey());
      expect(other.status, other.text).toBe(route.answer.status);
      // The three new rows are the two created things and the API key of the other caller.
      expect(await rows()).toBe(before + 3);
    });
  }
});

test('of two different concurrent requests with the same key, one is completed and the other gets 409', async () => {
  for (let round = 0; round < 5; round += 1) {
    const headers = { 'idempotency-key': `different-${round}` };
    const answers = await Promise.all([
      service.request('POST', '/agent/runs', { body: { prompt: 'a' }, headers }),
      service.request('POST', `/agent/runs/${runId}/followups`, { body: { message: 'a' }, headers }),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
  }
});

test('the answer to a refused create is not stored, so the corrected request may use the same key', async () => {
  const send = (body: object) =>
    service.request('POST', '/agent/runs', { body, headers: { 'idempotency-key': 'put-right' } });
  expect((await send({ prompt: 'a', config: { model_id: 'nobody/none' } })).status).toBe(400);
  expect((await send({ prompt: 'a' })).status).toBe(200);
});

test('the answer that contains a raw key is stored so that only its caller can read it', async () => {
  const headers = { 'idempotency-key': 'sealed' };
  const body = { name: 'a', kind: 'personal' };
  const { body: created } = await service.request<{ key: string }>('POST', '/keys', { body, headers });
  const [dump] = await service.deps.db.query<{ dump: string }>(
    'SELECT json_agg(k)::text AS dump FROM idempotency_keys k',
  );
  expect(dump?.dump).toContain('"sealed"');
  expect(dump?.dump).not.toContain(created.key);
  const { body: again } = await service.request<{ key: string }>('POST', '/keys', { body, headers });
  expect(again.key).toBe(created.key);
  expect((await service.request('GET', '/agent/runs', { key: again.key })).status).toBe(200);
});
