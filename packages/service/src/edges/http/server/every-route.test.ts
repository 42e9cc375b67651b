import { type ClientRequest, request } from 'node:http';
import { routes } from '@runyard/contract/routes';
import { apiPrefix, type Route } from '@runyard/contract/wire/route';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type CuttableLine, openCuttableLine } from '../../../../../../test/fakes/cuttable-line.ts';
import type { RequestOfRoute } from '../../../../test/own-requests.ts';
import { makeOwnThings } from '../../../../test/own-things.ts';
import type { TestServiceOptions } from '../../../../test/service.ts';
import { openTestService, startTestService, type TestService } from '../../../../test/service.ts';
import { signUrl } from '../../../platform/secrets/signed-urls.ts';

const service = await openTestService();
const { own, requestOf } = await makeOwnThings(service);

const allRoutes = Object.entries(routes) as [string, Route][];
const withBody = allRoutes.filter(([, route]) => route.body);
/** Routes that read the database: all except routes that answer from memory. */
const fromMemory = [
  'getOpenApi',
  'listFactoryFileSchemas',
  'getFactoryFileSchemas',
  'getFactoryFileSchema',
  'listSignOnProviders',
  'startSignOn',
  'startPasskeySignIn',
];
const reading = allRoutes.filter(([name]) => !fromMemory.includes(name));

const keyOf = (route: Route) => ('run' in route.allow ? own.runToken : service.key);

describe.each(withBody)('%s', (name, route) => {
  const json = { 'content-type': 'application/json' };
  const send = (status: number, options: object) =>
    service.problem(status, route.method, requestOf(name, route).path, { key: keyOf(route), ...options });

  test('answers 400 for a body that is not JSON or cannot be stored', async () => {
    expect((await send(400, { raw: '{', headers: json })).detail).toContain('not valid JSON');
    expect((await send(400, { raw: '{"a":"\\u0000"}', headers: json })).errors?.[0]?.path).toBe('a');
    for (const raw of ['"text"', 'null']) {
      expect((await send(400, { raw, headers: json })).error_code).toBe('invalid_request');
    }
  });

  test('answers 415 for a body of another type', async () => {
    await send(415, { raw: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } });
  });

  test('answers 413 as soon as the headers announce a body that is too large', async () => {
    const limitBytes = route.bodyLimitBytes ?? 1024 * 1024;
    const headers = {
      ...json,
      authorization: `Bearer ${keyOf(route)}`,
      'content-length': limitBytes + 1,
    };
    const status = await new Promise((resolve, reject) => {
      const asked = request(service.baseUrl + apiPrefix + requestOf(name, route).path, {
        method: route.method,
        headers,
        agent: false,
      });
      asked.on('error', reject);
      asked.on('response', (answer) => {
        resolve(answer.statusCode);
        asked.destroy();
      });
      asked.flushHeaders();
    });
    expect(status).toBe(413);
  });
});

describe('while another body of the team uses the whole memory budget and no further body may wait', () => {
  const room = { total: 1, perTeam: 1, perExecution: 1 };
  let full: TestService;
  let ask: RequestOfRoute;
  let token: string;
  let half: ClientRequest;

  /** Sends half of a body again and again, because the service closes the connection of a slow sender each time. */
  const hold = (): void => {
    half = request(`${full.baseUrl}${apiPrefix}/agent/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${full.key}`, 'content-length': 100 },
      agent: false,
    });
    half.on('error', () => undefined).on('response', (response) => response.resume());
    half.on('close', hold);
    half.write('{');
  };

  beforeAll(async () => {
    const bodyLimits = { smallBytes: 1e9, small: room, large: room, requestsPerExecution: 1, waiting: 0, waitMs: 1 };
    full = await startTestService({ bodyLimits });
    const made = await makeOwnThings(full);
    ask = made.requestOf;
    token = made.own.runToken;
    hold();
  });
  afterAll(async () => {
    half.removeAllListeners('close').destroy();
    await full.close();
  });

  test.each(withBody)('%s answers 429 with Retry-After', async (name, route) => {
    const { path, options } = ask(name, route);
    const key = 'run' in route.allow ? token : full.key;
    // Repeat the request until the unfinished body uses the whole memory budget. Before that, each answer is 400, because no route accepts
    // a list as its body.
    const send = async () => {
      const { status, headers } = await full.request(route.method, path, { key, body: options.body && [] });
      return [status, headers.get('retry-after')];
    };
    await expect.poll(send).toEqual([429, '2']);
  });
});

describe('for a key that has used up its requests', () => {
  const keyed = allRoutes.filter(([, route]) => 'user' in route.allow);
  let limited: TestService;
  beforeAll(async () => {
    limited = await startTestService({ env: { RUNYARD_KEY_REQUESTS_PER_MINUTE: '1' } });
  });
  // Runs before each test, because the key may send one more request each minute.
  beforeEach(() => limited.request('GET', '/agent/models'));
  afterAll(() => limited.close());

  test.each(keyed)('%s answers 429 with Retry-After and the limits', async (_name, route) => {
    const { headers } = await limited.request(route.method, route.path);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    expect(headers.get('ratelimit')).toContain('"key";r=0;t=');
    await limited.problem(429, route.method, route.path);
  });
});

test.each([
  ['readInbox', '/harness-support/inbox?wait_ms=long'],
  ['keepMemory', '/harness-support/memory?turn=0'],
  ['keepMemory', '/harness-support/memory?turn=2147483648'],
  ['keepWorkspace', '/harness-support/workspace'],
  ['keepWorkspace', '/harness-support/workspace?turn=2147483647'],
  ['listChildRuns', '/harness-support/child-runs?until=never'],
  ['getChildRun', '/harness-support/child-runs/x?wait_ms=-1'],
] as const)('%s answers 400 for a query that is wrong', async (name, path) => {
  const problem = await service.problem(400, routes[name].method, path, { key: own.runToken });
  expect(problem.errors).toHaveLength(1);
});

test.each([
  ['finishTask', { success: true, summary: 'done' }],
  ['uploadSnapshot', { files: [] }],
] as const)('%s answers 400 for a turn that the database cannot count', async (name, body) => {
  const { method, path } = routes[name];
  for (const turn of [0, 2 ** 31 - 1, 2 ** 31]) {
    const problem = await service.problem(400, method, path, { key: own.runToken, body: { ...body, turn } });
    expect(problem.errors?.map((error) => error.path)).toEqual(['turn']);
  }
});

/** Returns the path and the options of a request to the route with a key that the service must look up in the database. */
function askBroken(service: TestService, made: { token: string; ask: RequestOfRoute }, name: string, route: Route) {
  const { path, options } = made.ask(name, route);
  // The service accepts a recently used key without the database, so use a key that was not used before.
  const key = 'anyone' in route.allow ? null : made.token;
  const isSigned = 'anyone' in route.allow && route.allow.anyone === 'with_signature';
  const method = route.method === 'PUT' ? 'PUT' : 'GET';
  const url = isSigned ? signUrl(service.deps.signing, service.baseUrl, { method, path }).url : path;
  return { path: url, options: { ...options, key } };
}

async function startBroken(options?: TestServiceOptions) {
  const service = await startTestService(options);
  const { requestOf: ask, own } = await makeOwnThings(service);
  return { service, made: { ask, token: own.runToken } };
}

describe('while the database is gone', () => {
  let broken: Awaited<ReturnType<typeof startBroken>>;

  beforeAll(async () => {
    broken = await startBroken();
    const name = new URL(broken.service.database.url).pathname.slice(1);
    await service.deps.db.query(`DROP DATABASE ${name} WITH (FORCE)`);
  });
  afterAll(() => broken.service.close());

  test.each(reading)('%s answers 500 without the text of the cause', async (name, route) => {
    const { path, options } = askBroken(broken.service, broken.made, name, route);
    const problem = await broken.service.problem(500, route.method, path, options);
    expect(problem).toMatchObject({ error_code: 'internal_error', retryable: true });
    expect(problem).not.toHaveProperty('detail');
  });
});

describe('while the connection to the database is cut', () => {
  let line: CuttableLine;
  let broken: Awaited<ReturnType<typeof startBroken>>;

  beforeAll(async () => {
    const through = async (url: string) => {
      line = await openCuttableLine(url);
      return line.url;
    };
    broken = await startBroken({ through });
    line.cut();
  });
  afterAll(async () => {
    line.mend();
    await broken.service.close();
    await line.close();
  });

  test.each(reading)('%s answers 503 with a time to try again', async (name, route) => {
    const { path, options } = askBroken(broken.service, broken.made, name, route);
    const answer = await broken.service.request(route.method, path, options);
    expect([answer.status, answer.body]).toEqual([
      503,
      expect.objectContaining({ error_code: 'resource_unavailable', retryable: true }),
    ]);
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  });
});
