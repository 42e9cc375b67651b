/** Tests the answers for addresses that do not exist, to browsers and to API clients. */
import { expect, test } from 'vitest';
import { openTestService } from '../packages/service/test/service.ts';

const service = await openTestService();
const browserAccept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const get = async (path: string, accept: string) => {
  const answer = await fetch(service.baseUrl + path, { headers: { accept }, redirect: 'manual' });
  return { status: answer.status, type: answer.headers.get('content-type'), answer, text: await answer.text() };
};

const ofDashboard = ['/runs', '/runs/', '/runs/latest', '/runs/%3Cscript%3E', `/runs/${'a'.repeat(60)}`, '/runs/a/b/c'];

test.each(ofDashboard)(
  'the service shows the dashboard without content at %s, and repeats no part of the address',
  async (path) => {
    const { status, type, text, answer } = await get(path, browserAccept);
    expect([status, type]).toEqual([200, 'text/html; charset=utf-8']);
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(text).toContain('bin/runyard runs');
    expect(text).not.toMatch(/aaaa|latest/);
  },
);

const unknownElsewhere = [
  '/run',
  '/login?next=//evil.example',
  '/docs/',
  '/%3Cscript%3E',
  '/apiary',
  `/errors/${'a'.repeat(600)}`,
];

test.each(unknownElsewhere)(
  'the service shows an error page at %s, and repeats no part of the address',
  async (path) => {
    const { status, type, text, answer } = await get(path, browserAccept);
    expect([status, type]).toEqual([404, 'text/html; charset=utf-8']);
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(text).toContain('No such page');
    expect(text).not.toMatch(/<script>|evil|aaaa/);
    const head = await fetch(service.baseUrl + path, { method: 'HEAD', headers: { accept: browserAccept } });
    expect([head.status, head.headers.get('content-type'), await head.text()]).toEqual([404, type, '']);
  },
);

const ofPrograms = [
  '/api',
  '/api/v1/none',
  '/API/v1/none',
  '//api/v1/none',
  '/webhooks/none',
  '/api/v1/agent/runs/none',
];

test.each(ofPrograms)('the service sends a problem document at %s even to clients that ask for HTML', async (path) => {
  const { status, type } = await get(path, browserAccept);
  expect([401, 404]).toContain(status);
  expect(type).toMatch(/^application\/problem\+json/);
});

test('the service refuses other methods than GET and HEAD with a problem document', async () => {
  const headers = { accept: browserAccept };
  await service.problem(404, 'POST', `${service.baseUrl}/none`, { key: null, headers });
  await service.problem(405, 'POST', `${service.baseUrl}/docs`, { key: null, headers });
});

test.each([...unknownElsewhere, '/errors/none'])(
  'the service sends a problem document to clients that do not ask for HTML at %s',
  async (path) => {
    await service.problem(404, 'GET', service.baseUrl + path, { key: null, headers: { accept: '*/*' } });
    await service.problem(404, 'GET', service.baseUrl + path, { key: null, headers: { accept: 'application/json' } });
  },
);

test('the page of an unknown error has a link to the list of errors', async () => {
  const { status, text } = await get('/errors/none', browserAccept);
  expect(status).toBe(404);
  expect(text).toContain('href="/errors"');
});

test('the service does not reveal to strangers which runs exist', async () => {
  const known = await get(`/runs/${await service.newRun()}`, browserAccept);
  const other = await get('/runs/01a2019e-4045-7c7f-aefb-17084243a344', browserAccept);
  expect([other.status, other.text]).toEqual([known.status, known.text]);
});
