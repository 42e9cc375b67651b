import { randomUUIDv7 } from 'node:crypto';
import { routes } from '@runyard/contract/routes';
import type { Route } from '@runyard/contract/wire/route';
import { describe, expect, test } from 'vitest';
import { makeOwnThings } from '../../../../test/own-things.ts';
import { openTestService, type RequestOptions } from '../../../../test/service.ts';

const service = await openTestService();
const { own, requestOf } = await makeOwnThings(service);

const allRoutes = Object.entries(routes) as [string, Route][];
const withKey = allRoutes.filter(([, { allow }]) => 'user' in allow && !allow.publicThings);
// Each team has separate secrets with the same names.
// Secrets and providers have names instead of ids.
const withKeyAndId = withKey.filter(
  ([, { params, path }]) => params && path !== routes.putSecret.path && !path.startsWith(routes.putModelProvider.path),
);
const withCredential = allRoutes.filter(
  ([, { allow }]) => 'run' in allow || ('user' in allow && !allow.publicThings && !allow.keylessBytes),
);
const withSignature = allRoutes.filter(([, { allow }]) => 'anyone' in allow && allow.anyone === 'with_signature');
const forPublicThings = allRoutes.filter(([, { allow }]) => 'user' in allow && allow.publicThings);

test('every route of the table is registered, and declares how it is authorized', () => {
  for (const [name, route] of allRoutes) {
    const url = `/api/v1${route.path.replaceAll(/\{(\w+)\}/g, ':$1')}`;
    expect(service.app.hasRoute({ method: route.method, url }), name).toBe(true);
  }
});

const expectStatus = async (status: number, name: string, route: Route, given: RequestOptions) => {
  const { path, options } = requestOf(name, route);
  return await service.problem(status, route.method, path, { ...options, ...given });
};

describe.each(withCredential)('%s', (name, route) => {
  test('answers 401 without a key, with WWW-Authenticate', async () => {
    const { path, options } = requestOf(name, route);
    const answer = await service.request(route.method, path, { ...options, key: null });
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    expect(answer.body).toMatchObject({ error_code: 'authentication_required' });
  });

  test('answers 401 for a malformed header', async () => {
    for (const authorization of ['Basic YTpi', 'Bearer', 'Bearer a b'])
      await expectStatus(401, name, route, { key: null, headers: { authorization } });
  });
});

describe.each(withKey)('%s', (name, route) => {
  test('answers 403 for a team header that does not match the key', async () => {
    for (const header of ['x-team-uid', 'x-warp-team-uid']) {
      const problem = await expectStatus(403, name, route, { headers: { [header]: 'someone-else' } });
      expect(problem.error_code).toBe('not_authorized');
    }
  });
});

describe.each(withKeyAndId)('%s', (name, route) => {
  test('answers 404 for a thing of another team, as for an unknown one', async () => {
    const problem = await expectStatus(404, name, route, { key: service.otherKey });
    const { path, options } = requestOf(name, route);
    const [, query = ''] = /(\?.*)/.exec(path) ?? [];
    const unknown = (id: string) => route.path.replaceAll(/\{\w+\}/g, id) + query;
    expect((await service.problem(404, route.method, unknown(randomUUIDv7()), options)).detail).toBe(problem.detail);
    for (const malformed of ['x', '%00', 'a%2fb', "'--"]) {
      await service.problem(404, route.method, unknown(malformed), options);
    }
  });
});

test('an agent key and a role that is too low are refused, and the refusal names the needed role', async () => {
  const key = await service.newKey({ role: 'member' });
  const detailOf = async (method: string, path: string, given: RequestOptions) =>
    (await service.problem(403, method, path, given)).detail;
  expect(await detailOf('GET', '/event-subscriptions', { key })).toBe(
    'This endpoint needs the role admin in the team; the key has the role member.',
  );
  expect(await detailOf('POST', '/keys', { key, body: { name: 'K', kind: 'agent' } })).toBe(
    'This value of kind needs the role admin in the team; the key has the role member.',
  );
  expect(await detailOf('GET', '/keys', { key: await service.newKey({ kind: 'agent' }) })).toBe(
    'Keys of the kind agent may not call this endpoint; use a personal key.',
  );
});

test('readAttachment answers 404 for the token of another run', async () => {
  await service.problem(404, 'GET', `/harness-support/attachments/${own.attachmentId}`, {
    key: own.otherRunToken,
  });
  const answer = await service.request('GET', `/harness-support/attachments/${own.attachmentId}`, {
    key: own.runToken,
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

describe.each(forPublicThings)('%s', (name, route) => {
  test('answers 401 without a key, 404 for another team, 401 for an invalid key', async () => {
    const { path } = requestOf(name, route);
    await service.problem(401, route.method, path, { key: null });
    await service.problem(404, route.method, path, { key: service.otherKey });
    await service.problem(401, route.method, path, { key: 'ryk_unknown' });
    await service.problem(401, route.method, path.replace(own.artifactUid, randomUUIDv7()), { key: null });
  });
});
