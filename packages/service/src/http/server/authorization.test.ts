import { randomUUIDv7 } from 'node:crypto';
import type { Route } from '@runyard/contract/route';
import { routes } from '@runyard/contract/routes';
import { describe, expect, test } from 'vitest';
import { makeOwnThings } from '../../../test/own-things.ts';
import { openTestService } from '../../../test/service.ts';

const service = await openTestService();
const { own, requestOf } = await makeOwnThings(service);

const allRoutes = Object.entries(routes) as [string, Route][];
const withKey = allRoutes.filter(([, route]) => route.auth === 'key');
const withRunToken = allRoutes.filter(([, route]) => route.auth === 'run_token');
const withSignature = allRoutes.filter(([, route]) => route.auth === 'signature');
const withOptionalKey = allRoutes.filter(([, route]) => route.auth === 'optional_key');

test('every route of the table is registered, and says how it is authorized', () => {
  for (const [name, route] of allRoutes) {
    const url = `/api/v1${route.path.replaceAll(/\{(\w+)\}/g, ':$1')}`;
    expect(service.app.hasRoute({ method: route.method, url }), name).toBe(true);
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
      await expectStatus(401, own.otherRunToken);
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

describe.each(withOptionalKey)('%s', (name, route) => {
  test('answers 401 without a key, 404 for another team, 401 for an invalid key', async () => {
    const { path } = requestOf(name, route);
    await service.problem(401, route.method, path, { key: null });
    await service.problem(404, route.method, path, { key: service.otherKey });
    await service.problem(401, route.method, path, { key: 'ryk_unknown' });
    await service.problem(401, route.method, path.replace(own.artifactUid, randomUUIDv7()), { key: null });
  });
});
