import { get, type IncomingHttpHeaders } from 'node:http';
import { maxTextPreviewBytes } from '@runyard/contract/limits';
import { ArtifactPreview } from '@runyard/contract/runs/artifacts';
import { parseSettings } from '@runyard/contract/settings/settings';
import { describe, expect, test } from 'vitest';
import { newBrowserSession } from '../../../../test/browser-session.ts';
import { openTestService, type TestService } from '../../../../test/service.ts';

const plain = await openTestService();
const filesUrl = 'https://files.example:8443';
const separate = await openTestService({ env: { RUNYARD_FILES_URL: filesUrl } });

/** Stores a file as an agent does. Returns its UID. */
async function store(service: TestService, data: object, bytes: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const { runToken } = await service.startExecution();
  const body = await service.ok<{ artifact_uid: string; upload_url: string }>(
    'POST',
    '/harness-support/report-artifact',
    { key: runToken, body: { artifact_type: 'FILE', data: { filename: 'a', mime_type: 'text/plain', ...data } } },
  );
  const headers = { 'content-type': 'text/plain' };
  expect((await service.request('PUT', body.upload_url, { key: null, raw: bytes, headers })).status).toBe(200);
  return body.artifact_uid;
}

const preview = async (service: TestService, uid: string) =>
  ArtifactPreview.parse(await service.ok('GET', `/agent/artifacts/${uid}/preview`));

const open = (service: TestService, path: string | undefined) =>
  service.request('GET', `${service.baseUrl}${path}`, { key: null });

/** Sends a request as a browser does to the origin of files. */
const atFiles = (path: string, headers: Record<string, string> = {}) =>
  new Promise<{ status: number; headers: IncomingHttpHeaders; text: string }>((resolve, reject) => {
    get(`${separate.baseUrl}${path}`, { headers: { host: 'FILES.example:8443', ...headers } }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }));
    }).on('error', reject);
  });

const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]);
const html = '<!doctype html><script>parent.document.title = 1</script>';
const svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>';

describe.each([
  ['without an origin for files', plain],
  ['with an origin for files', separate],
])('a service %s', (_, service) => {
  test.each([
    ['PNG', png, 'image/png'],
    ['JPEG', Uint8Array.from([0xff, 0xd8, 0xff, 0xe0]), 'image/jpeg'],
    ['GIF', new TextEncoder().encode('GIF89a..'), 'image/gif'],
    ['WebP', new TextEncoder().encode('RIFF....WEBPVP8 '), 'image/webp'],
  ])('shows a %s from its own origin, even if the agent reports another type', async (_name, bytes, type) => {
    const uid = await store(service, { filename: 'a.html', mime_type: 'text/html' }, bytes);
    const found = await preview(service, uid);
    expect(found).toMatchObject({ kind: 'image', content_type: type, size_bytes: bytes.length });
    expect(found.url).toMatch(/^\/api\/v1\/blobs\/preview\//);
    const { status, headers } = await open(service, found.url);
    expect([status, headers.get('content-type'), headers.get('content-disposition')]).toEqual([200, type, 'inline']);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toBe("default-src 'none'; sandbox; frame-ancestors 'none'");
    expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
  });

  test('shows every text as plain text, even if the text is markup, and shortens a long text', async () => {
    const uid = await store(service, { filename: 'a.csv', mime_type: 'image/png' }, html);
    const found = await preview(service, uid);
    expect(found).toMatchObject({ kind: 'text', content_type: 'text/plain; charset=utf-8', shown_bytes: html.length });
    const answer = await open(service, found.url);
    expect([answer.text, answer.headers.get('content-type')]).toEqual([html, 'text/plain; charset=utf-8']);
    expect(answer.headers.get('content-security-policy')).toContain('sandbox');
    const long = await preview(service, await store(service, {}, 'x'.repeat(maxTextPreviewBytes + 10)));
    expect([long.size_bytes - (long.shown_bytes ?? 0), (await open(service, long.url)).text.length]).toEqual([
      10,
      maxTextPreviewBytes,
    ]);
  });

  test('does not show bytes that are no text, and gives the reason', async () => {
    for (const bytes of [Uint8Array.from([0, 1, 2]), Uint8Array.from([0xe9, 0x20]), ''])
      expect(await preview(service, await store(service, { mime_type: 'image/png' }, bytes))).toEqual({
        kind: 'none',
        size_bytes: bytes.length,
        reason: expect.any(String),
      });
  });

  test('lets only the team of the artifact read previews, also in a browser', async () => {
    const uid = await store(service, {}, 'text');
    const path = `/agent/artifacts/${uid}/preview`;
    const viewer = await service.newKey({ role: 'viewer' });
    expect((await service.request('GET', path, { key: viewer })).status).toBe(200);
    await service.problem(404, 'GET', path, { key: service.otherKey });
    await service.problem(401, 'GET', path, { key: null });
    const { url = '' } = await preview(service, uid);
    await service.problem(403, 'GET', `${service.baseUrl}${url.replace(/.$/, (last) => (last === 'A' ? 'E' : 'A'))}`, {
      key: null,
    });
    const { status, text } = await open(service, url.replace('/preview/', '/artifact/'));
    expect([status, JSON.parse(text).error_code]).toEqual([403, 'not_authorized']);
  });

  test('refuses a preview of an artifact without bytes', async () => {
    const { runToken: key } = await service.startExecution();
    const body = { artifact_type: 'PLAN', data: { content: '# Plan' } };
    const plan = await service.request<{ artifact_uid: string }>('POST', '/harness-support/report-artifact', {
      key,
      body,
    });
    await service.problem(400, 'GET', `/agent/artifacts/${plan.body.artifact_uid}/preview`);
  });
});

test.each([
  ['a.html', 'text/plain', html],
  ['a', 'text/html; charset=utf-8', html],
  ['a.svg', 'text/plain', svg],
  ['a', 'image/svg+xml', svg],
])('a %s of type %s is a download if there is no origin for files', async (filename, mime_type, bytes) => {
  const uid = await store(plain, { filename, mime_type }, bytes);
  expect(await preview(plain, uid)).toMatchObject({
    kind: 'none',
    reason: expect.stringContaining('RUNYARD_FILES_URL'),
  });
  const { headers } = await plain.request('GET', `/agent/artifacts/${uid}/download`);
  const location = headers.get('location') ?? '';
  expect(location.startsWith(plain.baseUrl)).toBe(true);
  const answer = await plain.request('GET', location, { key: null });
  expect(answer.headers.get('content-disposition')).toMatch(/^attachment/);
  expect(answer.headers.get('content-security-policy')).toContain('sandbox');
});

describe('the origin of files', () => {
  test('shows HTML and SVG only in a sandboxed frame of the pages, without scripts', async () => {
    for (const [filename, type, bytes] of [
      ['a.html', 'text/html; charset=utf-8', html],
      ['a.svg', 'image/svg+xml', svg],
    ] as const) {
      const found = await preview(separate, await store(separate, { filename }, bytes));
      expect(found).toMatchObject({ kind: 'frame', content_type: type });
      expect(found.url?.startsWith(`${filesUrl}/api/v1/blobs/preview/`)).toBe(true);
      const path = found.url?.slice(filesUrl.length) ?? '';
      const answer = await atFiles(path);
      expect([answer.status, answer.text, answer.headers['content-type']]).toEqual([200, bytes, type]);
      const policy = String(answer.headers['content-security-policy']).split('; ');
      expect(policy).toContain('sandbox');
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain(`frame-ancestors ${separate.baseUrl}`);
      expect((await open(separate, path)).status).toBe(404);
    }
  });

  test('serves signed downloads as attachments', async () => {
    const uid = await store(separate, {}, html);
    const { body } = await separate.request<{ data: { download_url: string } }>('GET', `/agent/artifacts/${uid}`);
    expect(body.data.download_url.startsWith(filesUrl)).toBe(true);
    const answer = await atFiles(body.data.download_url.slice(filesUrl.length));
    expect([answer.status, answer.text]).toEqual([200, html]);
    expect(answer.headers['content-disposition']).toMatch(/^attachment/);
  });

  test('serves no page and no API, even with a key or a session, and sets no cookie', async () => {
    const credentials = [
      {},
      { authorization: `Bearer ${separate.key}` },
      { cookie: `runyard=${await newBrowserSession(separate)}; __Host-runyard=x` },
    ];
    for (const headers of credentials)
      for (const path of [
        '/',
        '/docs',
        '/runs',
        '/healthz',
        '/api/v1/agent/runs/x',
        '/api/v1/blobs',
        '/unknown',
        '/%ff',
        '//api/v1/blobs/',
      ]) {
        const answer = await atFiles(path, { accept: 'text/html', ...headers });
        expect([path, answer.status >= 400]).toEqual([path, true]);
        expect(answer.headers['content-type']).toContain('application/problem+json');
        expect(answer.headers).not.toHaveProperty('set-cookie');
      }
  });

  test('is the only origin that the pages show in frames', async () => {
    const policyOf = async (service: TestService) =>
      (await service.request('GET', `${service.baseUrl}/docs`, { key: null })).headers.get('content-security-policy');
    expect(await policyOf(separate)).toContain(`frame-src ${filesUrl};`);
    expect(await policyOf(plain)).not.toContain('frame-src');
  });

  test('must have another host name than the pages, because ports share cookies', () => {
    const read = (base: string) => parseSettings({ RUNYARD_BASE_URL: base, RUNYARD_FILES_URL: filesUrl });
    expect(read('https://files.example')).toMatchObject({
      ok: false,
      problems: [expect.stringContaining('RUNYARD_FILES_URL')],
    });
    expect(read('https://runyard.example').ok).toBe(true);
  });
});
