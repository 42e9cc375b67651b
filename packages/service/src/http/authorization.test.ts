import { randomUUIDv7 } from 'node:crypto';
import type { Route } from '@runyard/contract/route';
import { routes } from '@runyard/contract/routes';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from './test-service.ts';

let service: TestService;
/** Ids of what the first team has: other teams must not see them. */
const own: Record<string, string> = {};

beforeAll(async () => {
  service = await startTestService();
  const execution = await service.startExecution({
    attachments: [{ file_name: 'a.txt', mime_type: 'text/plain', data: Buffer.from('a').toString('base64') }],
  });
  own.runId = execution.runId;
  own.conversationId = execution.conversationId;
  own.runToken = execution.runToken;
  own.otherRunToken = (await service.startExecution()).runToken;
  const reported = await service.request<{ artifact_uid: string }>('POST', '/harness-support/report-artifact', {
    key: own.runToken,
    body: { artifact_type: 'PLAN', data: { title: 'A plan', content: 'x' } },
  });
  own.artifactUid = reported.body.artifact_uid;
  const [attachment] = await service.deps.db.query<{ id: string }>('SELECT id FROM attachments');
  own.attachmentId = attachment?.id ?? '';
  const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
    body: { config: { name: 'E' } },
  });
  own.childRunId = randomUUIDv7();
  own.environmentUid = environment.body.uid;
  const snapshot = await service.request<{ files: { upload_url: string }[] }>(
    'POST',
    '/harness-support/upload-snapshot',
    {
      key: own.runToken,
      body: { turn: 1, files: [{ filename: 'a.patch', size_bytes: 1 }] },
    },
  );
  own.fileId = new URL(snapshot.body.files[0]?.upload_url ?? '').pathname.split('/').at(-1) ?? '';
  const [key] = await service.deps.db.query<{ id: string }>('SELECT id FROM api_keys WHERE is_operator');
  own.keyUid = key?.id ?? '';
  const subscription = await service.request<{ id: string }>('POST', '/event-subscriptions', {
    body: { url: 'https://example.com/', events: ['run.created'] },
  });
  own.subscriptionId = subscription.body.id;
  const ping = await service.request<{ id: string }>('POST', `/event-subscriptions/${own.subscriptionId}/test`);
  own.deliveryId = ping.body.id;
});
afterAll(() => service.close());

const allRoutes = Object.entries(routes) as [string, Route][];

/** A path that names things of the first team, and a body that would be accepted. */
function requestOf(name: string, route: Route) {
  const uid = route.path.startsWith('/keys') ? own.keyUid : own.environmentUid;
  const values: Record<string, string | undefined> = { ...own, uid, kind: 'artifact', id: own.artifactUid };
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, key: string) => values[key] ?? '');
  const bodies: Record<string, unknown> = {
    createRun: { prompt: 'a' },
    createRunDeprecated: { prompt: 'a' },
    createEnvironment: { config: { name: 'E' } },
    updateEnvironment: { config: { name: 'E' } },
    createEventSubscription: { url: 'https://example.com/', events: ['run.created'] },
    updateEventSubscription: { name: 'S' },
    createKey: { name: 'K', kind: 'personal' },
    reportEvents: { events: [] },
    reportArtifact: { artifact_type: 'PLAN', data: {} },
    finishTask: { success: true, summary: '' },
    uploadSnapshot: { turn: 1, files: [] },
    reportShutdown: { reason: 'x' },
    startChildRun: { prompt: 'a' },
    sendRunMessage: { run_id: own.runId, message: 'a' },
  };
  return { path, options: route.body ? { body: bodies[name] ?? {} } : {} };
}

const withKey = allRoutes.filter(([, route]) => route.auth === 'key');
const withRunToken = allRoutes.filter(([, route]) => route.auth === 'run_token');
const withSignature = allRoutes.filter(([, route]) => route.auth === 'signature');
const withOptionalKey = allRoutes.filter(([, route]) => route.auth === 'optional_key');

test('every route of the table is registered, and says how it is authorized', () => {
  for (const [name, route] of allRoutes) {
    const url = `/api/v1${route.path.replaceAll(/\{(\w+)\}/g, ':$1')}`;
    expect(service.built.app.hasRoute({ method: route.method, url }), name).toBe(true);
  }
});

describe.each([...withKey, ...withRunToken])('%s', (name, route) => {
  const ask = (key: string | null, headers = {}) => {
    const { path, options } = requestOf(name, route);
    return { method: route.method, path, options: { ...options, key, headers } };
  };
  const expectStatus = async (status: number, key: string | null, headers = {}) => {
    const { method, path, options } = ask(key, headers);
    return await service.problem(status, method, path, options);
  };

  test('answers 401 without a key, and asks for one', async () => {
    const { method, path, options } = ask(null);
    const answer = await service.request(method, path, options);
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    expect(answer.body).toMatchObject({ error_code: 'authentication_required' });
  });

  test('answers 401 for a malformed header', async () => {
    await expectStatus(401, null, { authorization: 'Basic YTpi' });
    await expectStatus(401, null, { authorization: 'Bearer' });
    await expectStatus(401, 'a b');
  });

  test('answers 401 for an unknown, an expired and a revoked key', async () => {
    await expectStatus(401, 'ryk_unknown');
    await expectStatus(401, await service.newKey({ expiresIn: '-1 minute' }));
    const revoked = await service.newKey();
    await service.deps.db.query(`DELETE FROM api_keys WHERE last_four = $1`, [revoked.slice(-4)]);
    await expectStatus(401, revoked);
  });

  if (route.auth === 'key') {
    test('answers 401 for a run token', async () => {
      await expectStatus(401, own.otherRunToken ?? '');
    });

    test('answers 403 for a team header that is not of the key', async () => {
      const problem = await expectStatus(403, service.key, { 'x-team-uid': 'someone-else' });
      expect(problem.error_code).toBe('not_authorized');
      await expectStatus(403, service.key, { 'x-warp-team-uid': 'someone-else' });
    });

    if (route.params) {
      test('answers 404 for a thing of another team, as for one that does not exist', async () => {
        const problem = await expectStatus(404, service.otherKey);
        expect(problem.error_code).toBe('resource_not_found');
        const { method, options } = ask(service.key);
        const unknown = route.path.replaceAll(/\{\w+\}/g, randomUUIDv7());
        expect((await service.problem(404, method, unknown, options)).detail).toBe(problem.detail);
        for (const malformed of ['x', '%00', 'a%2fb', "'--"]) {
          await service.problem(404, method, route.path.replaceAll(/\{\w+\}/g, malformed), options);
        }
      });
    }
  } else {
    test('answers 401 for an API key', async () => {
      await expectStatus(401, service.key);
    });
  }
});

test('readAttachment answers 404 for the token of another run', async () => {
  await service.problem(404, 'GET', `/harness-support/attachments/${own.attachmentId}`, {
    key: own.otherRunToken ?? '',
  });
  const answer = await service.request('GET', `/harness-support/attachments/${own.attachmentId}`, {
    key: own.runToken ?? '',
  });
  expect([answer.status, answer.text]).toEqual([200, 'a']);
});

test('a run token that was superseded by another assignment answers 401', async () => {
  const { runToken, executionId } = await service.startExecution();
  await service.deps.db.query('UPDATE executions SET token_hash = NULL WHERE id = $1', [executionId]);
  await service.problem(401, 'POST', '/harness-support/report-artifact', {
    key: runToken,
    body: { artifact_type: 'PLAN', data: {} },
  });
});

describe.each(withSignature)('%s', (name, route) => {
  test('answers 403 for a wrong or missing signature', async () => {
    const { path } = requestOf(name, route);
    const expires = Math.ceil(Date.now() / 1000) + 60;
    await service.problem(403, route.method, `${path}?expires=${expires}&signature=${'A'.repeat(43)}`);
    await service.problem(403, route.method, `${path}?expires=x&signature=x`);
    await service.problem(400, route.method, path);
  });
});

describe.each(withOptionalKey)('%s', (name, route) => {
  test('answers 401 without a key, 404 for another team, 401 for an invalid key', async () => {
    const { path } = requestOf(name, route);
    await service.problem(401, route.method, path, { key: null });
    await service.problem(404, route.method, path, { key: service.otherKey });
    await service.problem(401, route.method, path, { key: 'ryk_unknown' });
    await service.problem(401, route.method, path.replace(own.artifactUid ?? '', randomUUIDv7()), { key: null });
  });
});
