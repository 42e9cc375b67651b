import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { ReportArtifactResponse } from '@runyard/contract/agent/agent-protocol';
import { ArtifactResponse } from '@runyard/contract/runs/artifacts';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { signUrl } from '../../../platform/secrets/signed-urls.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { uploadArtifact } from '../../../runs/files/artifacts/upload.ts';

const maxArtifactMb = 3;
const maxArtifactBytes = maxArtifactMb * 1024 * 1024;
const service = await openTestService({
  env: { RUNYARD_ARTIFACT_MB: String(maxArtifactMb), RUNYARD_RUN_ARTIFACTS_MB: '4' },
});
const execution = await service.startExecution();

const reportArtifact = async (artifactType: string, data: object, headers = {}) =>
  ReportArtifactResponse.parse(
    await service.ok('POST', '/harness-support/report-artifact', {
      key: execution.runToken,
      body: { artifact_type: artifactType, data },
      headers,
    }),
  );

const put = (url: string | undefined, raw: string | Uint8Array<ArrayBuffer>) =>
  service.request('PUT', url ?? '', { key: null, raw, headers: { 'content-type': 'text/plain' } });

const file = async (data: object = {}, bytes = 'hello') => {
  const { artifact_uid, upload_url } = await reportArtifact('FILE', {
    filename: 'näme "1".txt',
    mime_type: 'text/html',
    ...data,
  });
  expect((await put(upload_url, bytes)).status).toBe(200);
  return artifact_uid;
};

const itemsOf = async (runId: string) =>
  (await service.ok<{ artifacts: { data: { artifact_uid?: string } }[] }>('GET', `/agent/runs/${runId}`)).artifacts;

describe('a FILE', () => {
  test('becomes visible after its bytes are stored', async () => {
    const { artifact_uid, upload_url } = await reportArtifact('FILE', {
      filename: 'a.txt',
      filepath: 'out/a.txt',
      mime_type: 'text/plain',
    });
    await service.problem(404, 'GET', `/agent/artifacts/${artifact_uid}`);
    expect((await itemsOf(execution.runId)).some((item) => item.data.artifact_uid === artifact_uid)).toBe(false);
    await put(upload_url, 'hello');
    const answer = await service.request('GET', `/agent/artifacts/${artifact_uid}`);
    const artifact = ArtifactResponse.parse(answer.body);
    expect(artifact).toMatchObject({
      artifact_type: 'FILE',
      artifact_uid,
      data: { filename: 'a.txt', filepath: 'out/a.txt', content_type: 'text/plain', size_bytes: 5 },
    });
    expect(await itemsOf(execution.runId)).toContainEqual(
      expect.objectContaining({
        data: expect.objectContaining({ artifact_uid, size_bytes: 5, filepath: 'out/a.txt' }),
      }),
    );
  });

  test('is downloaded by a signed URL and never rendered as a page of the service', async () => {
    const uid = await file({}, '<script>alert(1)</script>');
    const redirect = await service.request('GET', `/agent/artifacts/${uid}/download`);
    expect(redirect.status).toBe(302);
    const answer = await service.request('GET', redirect.headers.get('location') ?? '', { key: null });
    expect(answer.text).toBe('<script>alert(1)</script>');
    expect(answer.headers.get('content-disposition')).toBe(
      `attachment; filename="n_me _1_.txt"; filename*=UTF-8''n%C3%A4me%20%221%22.txt`,
    );
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('content-security-policy')).toContain('sandbox');
    expect(answer.headers.get('content-length')).toBe('25');
  });

  test('is served in ranges, and by HEAD without a body', async () => {
    const uid = await file({}, '0123456789');
    const url = (await service.request('GET', `/agent/artifacts/${uid}/download`)).headers.get('location') ?? '';
    const ask = (range: string) => service.request('GET', url, { key: null, headers: { range } });
    const middle = await ask('bytes=2-4');
    expect([middle.status, middle.text, middle.headers.get('content-range')]).toEqual([206, '234', 'bytes 2-4/10']);
    expect((await ask('bytes=-3')).text).toBe('789');
    expect((await ask('bytes=8-')).text).toBe('89');
    const none = await ask('bytes=10-');
    expect([none.status, none.headers.get('content-range')]).toEqual([416, 'bytes */10']);
    expect(none.body).toMatchObject({ error_code: 'invalid_request' });
    expect((await ask('lines=1-2')).status).toBe(200);
    const changed = await service.request('GET', url, {
      key: null,
      headers: { range: 'bytes=2-4', 'if-range': '"a"' },
    });
    expect([changed.status, changed.text]).toEqual([200, '0123456789']);
    const etag = middle.headers.get('etag') ?? '';
    expect(etag).toBe(`"${createHash('sha256').update('0123456789').digest('hex')}"`);
    const same = await service.request('GET', url, { key: null, headers: { range: 'bytes=7-', 'if-range': etag } });
    expect([same.status, same.text, same.headers.get('etag')]).toEqual([206, '789', etag]);
    const body = await service.ok<ArtifactResponse>('GET', `/agent/artifacts/${uid}`);
    expect(ArtifactResponse.parse(body).data).toMatchObject({ sha256: etag.slice(1, -1) });
    const head = await service.request('HEAD', url, { key: null });
    expect([head.status, head.text, head.headers.get('content-length')]).toEqual([200, '', '10']);
  });

  test('accepts the same bytes again, and refuses different ones', async () => {
    const { upload_url } = await reportArtifact('FILE', { filename: 'a' });
    expect((await put(upload_url, 'one')).status).toBe(200);
    expect((await put(upload_url, 'one')).status).toBe(200);
    await service.problem(409, 'PUT', upload_url ?? '', { key: null, raw: 'two' });
    const blobs = [];
    for await (const blob of service.deps.blobs.list())
      if (blob.key.includes(upload_url?.match(/uploads\/([^?]+)/)?.[1] ?? '?')) blobs.push(blob);
    expect(blobs).toHaveLength(1);
  });

  test('keeps its bytes if the answer to the database commit is lost', async () => {
    const { artifact_uid, upload_url } = await reportArtifact('FILE', { filename: 'a' });
    const { db } = service.deps;
    const losesAnswer: Database = {
      ...db,
      transaction: async (work) => {
        await db.transaction(work);
        throw new Error('connection lost');
      },
    };
    const deps = { ...service.deps, db: losesAnswer };
    const lost = uploadArtifact(deps, artifact_uid, { bytes: Readable.from([Buffer.from('one')]) });
    await expect(lost).rejects.toThrow('connection lost');
    // The agent sends the file again.
    expect((await put(upload_url, 'one')).status).toBe(200);
    const body = await service.ok<{ data: { download_url: string } }>('GET', `/agent/artifacts/${artifact_uid}`);
    expect((await service.request('GET', body.data.download_url)).text).toBe('one');
  });

  test('is refused with 413 above RUNYARD_ARTIFACT_MB, and stored up to this size', async () => {
    const { artifact_uid, upload_url } = await reportArtifact('FILE', { filename: 'big' });
    const declared = await put(upload_url, new Uint8Array(maxArtifactBytes + 1));
    expect(declared.status).toBe(413);
    const streamed = await fetch(upload_url ?? '', {
      method: 'PUT',
      duplex: 'half',
      body: new ReadableStream({
        start(controller) {
          for (let sent = 0; sent <= maxArtifactBytes; sent += 1024 * 1024)
            controller.enqueue(new Uint8Array(1024 * 1024));
          controller.enqueue(new Uint8Array(1));
          controller.close();
        },
      }),
    } as RequestInit);
    expect(streamed.status).toBe(413);
    await service.problem(404, 'GET', `/agent/artifacts/${artifact_uid}`);
    expect(declared.text).toContain(
      'The artifact has 3,145,729 bytes; at most 3,145,728 bytes (3.0 MB) (RUNYARD_ARTIFACT_MB)',
    );
    expect(await streamed.text()).toContain('The artifact has more than 3.0 MB (RUNYARD_ARTIFACT_MB)');
    expect((await put(upload_url, new Uint8Array(maxArtifactBytes))).status).toBe(200);
  });

  test.each([
    ['one artifact', 5, 'The artifact has 5.0 MB; at most 3.0 MB (RUNYARD_ARTIFACT_MB)'],
    [
      'the artifacts of a run',
      2.5,
      'The artifact has 2.5 MB, and the other artifacts of the run have 1.8 MB; together they may have 4.0 MB (RUNYARD_RUN_ARTIFACTS_MB)',
    ],
  ])('is refused when it is reported if its stated size is above the limit of %s', async (_what, mb, detail) => {
    const { runToken: key } = await service.startExecution();
    const report = (size: number) => ({
      key,
      body: { artifact_type: 'FILE', data: { filename: 'a', size_bytes: size * 1024 * 1024 } },
    });
    const path = '/harness-support/report-artifact';
    const body = await service.ok<{ upload_url: string }>('POST', path, report(1.75));
    expect((await put(body.upload_url, new Uint8Array(1.75 * 1024 * 1024))).status).toBe(200);
    expect((await service.problem(413, 'POST', path, report(mb))).detail).toContain(detail);
  });

  test('is refused if its bytes do not have the stated digest, and stored if they have', async () => {
    const { artifact_uid, upload_url } = await reportArtifact('FILE', { filename: 'a' });
    const send = (raw: string) =>
      service.request('PUT', upload_url ?? '', {
        key: null,
        raw,
        headers: {
          'content-type': 'text/plain',
          'content-digest': `sha-256=:${createHash('sha256').update('whole').digest('base64')}:`,
        },
      });
    const refused = await send('torn!');
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('changed during the upload')]);
    await service.problem(404, 'GET', `/agent/artifacts/${artifact_uid}`);
    expect((await send('whole')).status).toBe(200);
    const blobs = [];
    for await (const { key } of service.deps.blobs.list()) if (key.includes(artifact_uid)) blobs.push(key);
    expect(blobs).toHaveLength(1);
  });

  test('cannot be read by a URL for another object or method, or by an expired URL', async () => {
    const [one, two] = [await file(), await file()];
    const url = (await service.request('GET', `/agent/artifacts/${one}/download`)).headers.get('location') ?? '';
    await service.problem(403, 'GET', url.replace(one, two), { key: null });
    await service.problem(403, 'GET', url.replace(/expires=\d+/, 'expires=99999999999'), { key: null });
    const { upload_url } = await reportArtifact('FILE', { filename: 'a' });
    const asGet = (upload_url ?? '').replace('harness-support/uploads', 'blobs/artifact');
    await service.problem(403, 'GET', asGet, { key: null });
    const target = { method: 'GET', path: `/blobs/artifact/${one}` } as const;
    const old = signUrl(service.deps.signing, service.baseUrl, target, Date.now() - 16 * 60_000).url;
    expect((await service.problem(403, 'GET', old, { key: null })).detail).toContain('expired');
  });

  test.each([
    ['/tmp/a.txt', 'tmp/a.txt'],
    ['../../etc/a.txt', 'etc/a.txt'],
    ['out/./b/../a.txt', 'out/a.txt'],
    ['..', 'näme "1".txt'],
    ['out/a.txt', 'out/a.txt'],
  ])('reports the path %s without parts that lead out of the folder', async (filepath, told) => {
    const uid = await file({ filepath });
    const body = await service.ok<ArtifactResponse>('GET', `/agent/artifacts/${uid}`);
    expect(ArtifactResponse.parse(body).data).toMatchObject({ filepath: told });
  });

  test('cannot be read after it is deleted', async () => {
    const uid = await file();
    const url = (await service.request('GET', `/agent/artifacts/${uid}/download`)).headers.get('location') ?? '';
    await service.deps.db.query('DELETE FROM artifacts WHERE id = $1', [uid]);
    await service.problem(404, 'GET', url, { key: null });
  });

  test('is readable without a key if it is public, and its path is hidden', async () => {
    const uid = await file({ filepath: '/secret/place' });
    await service.deps.db.query('UPDATE artifacts SET is_public = true WHERE id = $1', [uid]);
    const answer = await service.request<ArtifactResponse>('GET', `/agent/artifacts/${uid}`, { key: null });
    expect(answer.status).toBe(200);
    expect(answer.text).not.toContain('secret');
    expect((await service.request('GET', `/agent/artifacts/${uid}`, { key: service.otherKey })).text).not.toContain(
      'secret',
    );
  });
});

describe('GET /agent/artifacts/{artifactUid}', () => {
  test('answers with a download URL for a SCREENSHOT', async () => {
    const { artifact_uid, upload_url } = await reportArtifact('SCREENSHOT', { description: 'The page' });
    await put(upload_url, 'png');
    const body = await service.ok('GET', `/agent/artifacts/${artifact_uid}`);
    expect(ArtifactResponse.parse(body)).toMatchObject({
      artifact_type: 'SCREENSHOT',
      data: { content_type: 'image/png', description: 'The page' },
    });
  });

  test('links a picture to its run and to the pull requests of the run, but only for the team', async () => {
    const { artifact_uid, upload_url } = await reportArtifact('SCREENSHOT', {});
    await put(upload_url, 'png');
    const url = 'https://example.com/acme/site/pull/7';
    await reportArtifact('PULL_REQUEST', { url, branch: 'b' });
    const body = await service.ok<ArtifactResponse>('GET', `/agent/artifacts/${artifact_uid}`);
    const { source_links: links } = body.artifact_type === 'SCREENSHOT' ? body : expect.fail('no picture');
    expect(links?.run_url).toMatch(/\/runs\/[0-9a-f-]{36}$/);
    expect(links?.pull_request_urls).toContain(url);
    await service.deps.db.query('UPDATE artifacts SET is_public = true WHERE id = $1', [artifact_uid]);
    for (const key of [null, service.otherKey])
      expect((await service.request('GET', `/agent/artifacts/${artifact_uid}`, { key })).text).not.toContain(
        'source_links',
      );
  });

  test("answers with the whole text of a PLAN, which the run's list of artifacts omits", async () => {
    const { artifact_uid } = await reportArtifact('PLAN', { title: 'Plan', content: '# Steps' });
    const body = await service.ok('GET', `/agent/artifacts/${artifact_uid}`);
    expect(ArtifactResponse.parse(body)).toMatchObject({
      data: { content: '# Steps', content_type: 'text/markdown', title: 'Plan' },
    });
    expect(JSON.stringify(await itemsOf(execution.runId))).not.toContain('# Steps');
    const { detail } = await service.problem(400, 'GET', `/agent/artifacts/${artifact_uid}/download`);
    expect(detail).toContain(`/agent/artifacts/${artifact_uid}.`);
  });

  test('and its download answer 400 for an EXTERNAL_REFERENCE and a PULL_REQUEST', async () => {
    const url = 'HTTPS://Example.COM:443/Issue/1/#frag';
    const { artifact_uid } = await reportArtifact('EXTERNAL_REFERENCE', { reference_type: 'issue', url });
    const problem = await service.problem(400, 'GET', `/agent/artifacts/${artifact_uid}`);
    expect(problem.error_code).toBe('operation_not_supported');
    const [row] = await service.deps.db.query('SELECT canonical_url FROM artifacts WHERE id = $1', [artifact_uid]);
    expect(row).toEqual({ canonical_url: 'https://example.com/Issue/1' });
    const pull = await reportArtifact('PULL_REQUEST', { url: 'https://example.com/pr/1', branch: 'b' });
    await service.problem(400, 'GET', `/agent/artifacts/${pull.artifact_uid}/download`);
  });
});

describe('POST /harness-support/report-artifact', () => {
  test.each([
    ['an unknown type', 'SONG', {}, 'artifact_type'],
    ['a file without a name', 'FILE', {}, 'data.filename'],
    ['a file name that is a path', 'FILE', { filename: '../x' }, 'data.filename'],
    ['a file name with a line break', 'FILE', { filename: 'a\nb' }, 'data.filename'],
    [
      'a media type that would be a header of its own',
      'FILE',
      { filename: 'a', mime_type: 'text/plain\r\nx: y' },
      'data.mime_type',
    ],
    [
      'a link that is no web address',
      'EXTERNAL_REFERENCE',
      { reference_type: 'x', url: 'javascript:alert(1)' },
      'data.url',
    ],
    [
      'metadata over 4,096 characters',
      'EXTERNAL_REFERENCE',
      { reference_type: 'x', url: 'https://e.com', metadata: { a: 'x'.repeat(4096) } },
      'data.metadata',
    ],
    ['a pull request without its branch', 'PULL_REQUEST', { url: 'https://e.com' }, 'data.branch'],
    ['a NUL in a title', 'PLAN', { title: '\u0000' }, 'data.title'],
    ['a title whose length cannot be compared', 'PLAN', { title: { length: { toString: '' } } }, 'data.title'],
  ])('answers 400 for %s', async (_, artifact_type, data, path) => {
    const problem = await service.problem(400, 'POST', '/harness-support/report-artifact', {
      key: execution.runToken,
      body: { artifact_type, data },
    });
    expect(problem.errors?.map((error) => error.path)).toContain(path);
  });

  test('repeats the first answer for a second request with the same Idempotency-Key, and answers 409 for other data', async () => {
    const headers = { 'idempotency-key': 'once' };
    const first = await reportArtifact('PLAN', { title: 'a' }, headers);
    expect(await reportArtifact('PLAN', { title: 'a' }, headers)).toEqual(first);
    await service.problem(409, 'POST', '/harness-support/report-artifact', {
      key: execution.runToken,
      body: { artifact_type: 'PLAN', data: { title: 'b' } },
      headers,
    });
  });

  test('answers 400 for the 101st artifact of a run, also concurrently', async () => {
    const other = await service.startExecution();
    const answers = await Promise.all(
      Array.from({ length: 105 }, () =>
        service.request('POST', '/harness-support/report-artifact', {
          key: other.runToken,
          body: { artifact_type: 'PLAN', data: {} },
        }),
      ),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(100);
    expect(answers.filter(({ status }) => status === 400)).toHaveLength(5);
  });
});

test.each(['', '/download'])('GET …/{artifactUid}%s answers 403 if the header names another team', async (what) => {
  const headers = { 'x-team-uid': 'another-team' };
  await service.problem(403, 'GET', `/agent/artifacts/00000000-0000-7000-8000-000000000000${what}`, { headers });
});

test('a run has at most 20 whole outputs of commands, which leave room for other artifacts', async () => {
  const { runId, runToken } = await service.startExecution();
  const report = async (data: object) =>
    await service.request('POST', '/harness-support/report-artifact', {
      key: runToken,
      body: { artifact_type: 'FILE', data: { filename: 'f.txt', ...data } },
    });
  const outputs = await Promise.all(Array.from({ length: 25 }, (_, n) => report({ output_of_action: `a${n}` })));
  expect(outputs.filter(({ status }) => status === 200)).toHaveLength(20);
  expect(outputs.find(({ status }) => status === 400)?.text).toContain('at most 20 outputs of commands');
  expect((await report({})).status).toBe(200);
  const first = outputs.find(({ status }) => status === 200)?.body as { artifact_uid: string; upload_url: string };
  expect((await put(first.upload_url, 'whole')).status).toBe(200);
  const [item] = await itemsOf(runId);
  expect(item?.data).toMatchObject({ artifact_uid: first.artifact_uid, output_of_action: expect.stringMatching(/^a/) });
});
