import { randomUUIDv7 } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import { ListModelsResponse } from '@runyard/contract/team/models';
import { errorCatalogue } from '@runyard/contract/wire/error-catalogue';
import { errorSlug, Problem } from '@runyard/contract/wire/errors';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../test/service.ts';
import { authenticateWorker } from './server/authorize.ts';

const service = await openTestService();

const page = (address: string, headers = {}) =>
  service.request('GET', service.baseUrl + address, { key: null, headers });

describe('the answer to a faulty request', () => {
  test('is 404 for a path that does not exist, with every member of the contract', async () => {
    const problem = await service.problem(404, 'GET', '/nothing?token=secret', {
      headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
    });
    expect(problem).toEqual({
      type: `${service.baseUrl}/errors/resource-not-found`,
      title: 'Resource not found',
      status: 404,
      detail: 'There is nothing at this path.',
      instance: '/api/v1/nothing',
      error: 'Resource not found (There is nothing at this path.)',
      error_code: 'resource_not_found',
      retryable: false,
      trace_id: '0af7651916cd43dd8448eb211c80319c',
    });
  });

  test.each([
    'garbage',
    '00-00000000000000000000000000000000-b7ad6b7169203331-01',
    'ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  ])('has a new trace id if the traceparent (%s) is invalid', async (traceparent) => {
    const { trace_id } = await service.problem(404, 'GET', '/nothing', { headers: { traceparent } });
    expect(trace_id).toMatch(/^[0-9a-f]{32}$/);
    expect(traceparent).not.toContain(trace_id);
  });

  test('is 405 with Allow for a method that a path does not have', async () => {
    const answer = await service.request('PATCH', `/agent/runs/${randomUUIDv7()}`);
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD, DELETE']);
    expect((await service.request('DELETE', '/agent/runs')).headers.get('allow')).toContain('POST');
  });

  test.each(['QUERY', 'TRACE', 'PROPFIND', 'OPTIONS'])(
    'is 405 with Allow for %s, with and without a body',
    async (method) => {
      const { port } = new URL(service.baseUrl);
      const ask = (body: string) =>
        new Promise<[number | undefined, string | undefined]>((resolve, reject) => {
          const options = { port, method, path: '/api/v1/agent/models', headers: { 'content-length': body.length } };
          const request = httpRequest(options, (answer) => {
            answer.resume();
            resolve([answer.statusCode, answer.headers.allow]);
          });
          request.on('error', reject).end(body);
        });
      for (const body of ['', '{}']) expect(await ask(body)).toEqual([405, 'GET, HEAD']);
    },
  );

  test('is 400 for a path that is not a URL path', async () => {
    expect((await service.problem(400, 'GET', '/agent/runs/%E0%A4%A')).error_code).toBe('invalid_request');
  });

  test('is 404 for an id of any length, and has the headers that every answer has', async () => {
    const answer = await service.request('GET', `/agent/runs/${'a'.repeat(600)}`);
    expect([answer.status, answer.headers.get('x-content-type-options')]).toEqual([404, 'nosniff']);
    expect(answer.headers.get('x-request-id')).toMatch(/^[\w-]{36}$/);
  });

  test('is 400 with the name of the wrong member, or with a fault of the whole request', async () => {
    const runId = await service.newRun();
    await service.request('POST', `/agent/runs/${runId}/cancel`);
    const problem = await service.problem(400, 'POST', `/agent/runs/${runId}/cancel`);
    expect(problem.errors).toEqual([{ path: '', message: 'The run has ended already.' }]);
  });

  test('is 500 without the text of an unexpected cause; the log has the cause under the same trace_id', async () => {
    const { db } = service.deps;
    await db.query('ALTER TABLE environments RENAME TO hidden');
    const problem = await service.problem(500, 'GET', '/agent/environments');
    await db.query('ALTER TABLE hidden RENAME TO environments');
    expect(problem).toMatchObject({ error_code: 'internal_error', retryable: true });
    expect(JSON.stringify(problem)).not.toContain('relation');
    expect(service.logged.some((line) => line.includes(problem.trace_id) && line.includes('relation'))).toBe(true);
  });

  test('has an error code, and each code has a page that explains the code', async () => {
    for (const [code, kind] of Object.entries(errorCatalogue)) {
      const answer = await page(`/errors/${errorSlug(code as keyof typeof errorCatalogue)}`);
      expect(answer.status).toBe(200);
      expect(answer.text).toContain(kind.title);
    }
    expect((await page('/errors/nope')).status).toBe(404);
  });
});

test('an empty body counts as no body, even with the content type of a form', async () => {
  const empty = { raw: '', headers: { 'content-type': 'application/x-www-form-urlencoded' } };
  const runId = await service.newRun();
  expect((await service.request('POST', `/agent/runs/${runId}/rerun`, empty)).status).toBe(200);
  expect((await service.request('POST', `/agent/runs/${runId}/cancel`, empty)).status).toBe(200);
  expect((await service.problem(400, 'POST', '/agent/runs', empty)).detail).toBe('a JSON body is required');
});

describe('every answer', () => {
  test('has a request id, and a harmless id of the caller is used as the request id', async () => {
    expect((await page('/healthz')).headers.get('x-request-id')).toMatch(/^[\w-]{36}$/);
    expect((await page('/healthz', { 'x-request-id': 'abc-1' })).headers.get('x-request-id')).toBe('abc-1');
    expect((await page('/healthz', { 'x-request-id': 'a b{}' })).headers.get('x-request-id')).not.toBe('a b{}');
  });

  test('of the API must not be cached', async () => {
    for (const path of ['/agent/models', '/agent/runs', '/agent/runs/x']) {
      expect((await service.request('GET', path)).headers.get('cache-control')).toBe('no-store');
    }
  });

  test('to HEAD has the headers of GET and no body', async () => {
    const answer = await service.request('HEAD', '/agent/models');
    expect([answer.status, answer.text]).toEqual([200, '']);
  });

  test('leaves no key, token or signature in the log', async () => {
    const key = await service.newKey();
    const { runToken } = await service.startExecution();
    await service.request('GET', '/agent/runs?q=secret-query', { key });
    await service.request('GET', `/blobs/artifact/${randomUUIDv7()}?expires=1&signature=secret-signature`, {
      key: null,
    });
    await service.request('POST', '/harness-support/report-artifact', {
      key: runToken,
      body: { artifact_type: 'PLAN', data: {} },
    });
    const log = service.logged.join('');
    for (const secret of [key, runToken, service.key, 'secret-query', 'secret-signature'])
      expect(log).not.toContain(secret);
    expect(log).toContain('/api/v1/agent/runs');
  });
});

test('the OpenAPI document is served with the address of this service', async () => {
  const answer = await service.request<{ openapi: string; servers: unknown }>('GET', '/openapi.json', { key: null });
  expect(answer.body).toMatchObject({ openapi: '3.1.0', servers: [{ url: `${service.baseUrl}/api/v1` }] });
});

describe('models and workers', () => {
  test('models are listed with the default model', async () => {
    const { body } = await service.request('GET', '/agent/models');
    expect(ListModelsResponse.parse(body).default_model_id).toBe('runbook');
  });

  test("a worker's connection is authenticated with an API key, like a request", async () => {
    const { keys } = service.deps;
    expect(await authenticateWorker(keys, `Bearer ${service.key}`)).toMatchObject({
      teamId: service.teamId,
      serves: 'all',
    });
    expect(await authenticateWorker(keys, `Bearer ${service.otherKey}`)).toMatchObject({
      teamId: service.otherTeamId,
      serves: 'team',
    });
    expect(await authenticateWorker(keys, 'Bearer nope')).toBeNull();
    expect(await authenticateWorker(keys, undefined)).toBeNull();
  });
});

describe('health', () => {
  test('/healthz and /readyz answer 200', async () => {
    expect((await page('/healthz')).body).toEqual({ status: 'ok' });
    expect((await page('/readyz')).body).toEqual({ status: 'ready' });
  });

  test('/readyz answers 503 while a migration is missing', async () => {
    const { db } = service.deps;
    await db.query(`UPDATE schema_migrations SET name = name || '_x'`);
    const answer = await page('/readyz');
    expect([answer.status, answer.text]).toEqual([503, expect.stringContaining('migrations not applied')]);
    await db.query(`UPDATE schema_migrations SET name = left(name, -2)`);
  });
});

const schemasIn = (page: string): number => page.split('<article id="schema-').length - 1;

describe('pages', () => {
  test.each(['/docs', '/errors', `/runs/${randomUUIDv7()}`])('%s allow no inline code and no frame', async (path) => {
    const answer = await page(path);
    expect(answer.status).toBe(200);
    const policy = answer.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(answer.text).not.toMatch(/<script(?![^>]*src=)/);
    expect(answer.text).not.toMatch(/ style=| on\w+=/);
  });

  test('/docs shows every endpoint', async () => {
    const { text } = await page('/docs');
    const { body } = await service.request<{ paths: Record<string, unknown> }>('GET', '/openapi.json', { key: null });
    for (const path of Object.keys(body.paths)) expect(text).toContain(path);
  });

  test('/docs begins with a run that needs no language model, and has an example of every operation', async () => {
    const { text } = await page('/docs');
    const [lead = ''] = text.split('<section');
    expect(lead).toContain('curl &quot;');
    expect(lead).toContain('{&quot;model_id&quot;:&quot;runbook&quot;}');
    expect(text.split('<summary>Example</summary>')).toHaveLength(text.split('<article id="').length - schemasIn(text));
  });

  test('/docs shows for a member that only refers to a schema the description of that schema', async () => {
    const { text } = await page('/docs');
    const [, run = ''] = text.split('<article id="schema-RunItem">');
    expect(run.split('</article>')[0]).toContain('QUEUED: waits for a free slot');
  });

  test('the frame of the dashboard is the same at the address of every screen', async () => {
    const router = await readFile(
      path.resolve(import.meta.dirname, '../../../../dashboard/src/app/router.tsx'),
      'utf8',
    );
    const addresses = [...router.matchAll(/ path: '([^']+)'/g)].map(([, address = '']) => address.replaceAll('$', ''));
    expect(addresses).toContain('/compare');
    const { text } = await page('/');
    for (const address of addresses) expect((await page(address)).text, address).toBe(text);
  });

  test('each class of the pages beside the dashboard has a rule in their style sheet', async () => {
    const sheet = (await page('/assets/pages.css')).text;
    const shown = await Promise.all(
      ['/docs', '/errors', '/errors/conflict', '/nothing'].map((address) => page(address, { accept: 'text/html' })),
    );
    const classes = shown.flatMap(({ text }) => [...text.matchAll(/ class="([^"]+)"/g)].map(([, names = '']) => names));
    const names = new Set(classes.flatMap((each) => (each.startsWith('method ') ? ['method'] : each.split(' '))));
    expect(names.size).toBeGreaterThan(10);
    expect([...names].filter((name) => !new RegExp(`\\.${name}\\b`).test(sheet))).toEqual([]);
  });

  test('files are sent again only when they changed', async () => {
    const first = await page('/assets/pages.css');
    expect(first.headers.get('content-type')).toMatch(/^text\/css/);
    expect((await page('/assets/pages.css', { 'if-none-match': first.headers.get('etag') })).status).toBe(304);
  });
});

describe('a request that Node cannot parse, or would answer without the service', () => {
  const answerTo = (text: string) =>
    new Promise<string>((resolve) => {
      let received = '';
      const socket = connect(Number(new URL(service.baseUrl).port), '127.0.0.1', () => socket.write(text));
      socket.on('data', (data) => {
        received += data;
      });
      socket.on('close', () => resolve(received));
    });

  test.each([
    [400, 'no HTTP', 'NOT HTTP\r\n\r\n'],
    [400, 'a length that is none', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: b\r\n\r\n'],
    [400, 'no Host', 'GET /healthz HTTP/1.1\r\n\r\n'],
    [417, 'an unknown expectation', 'GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n'],
    [431, 'headers over 16 KB', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`],
  ])('gets a problem document and the end of its connection, %i for %s', async (status, _, text) => {
    const [head = '', body = ''] = (await answerTo(text)).split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(head).toMatch(/^x-request-id: \w+/m);
    expect(head).toMatch(/^content-type: application\/problem\+json/m);
    expect(Problem.parse(JSON.parse(body))).toMatchObject({ status, error_code: 'invalid_request' });
  });

  test('of HTTP/1.0 needs no Host, and 100-continue is answered', async () => {
    expect(await answerTo('GET /healthz HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1.1 200 /);
    const expecting = 'GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n';
    expect(await answerTo(expecting)).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 /);
  });
});
