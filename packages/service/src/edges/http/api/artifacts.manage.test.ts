/** Tests the sharing and deletion of artifacts, and the search for the run of an external reference. */
import { randomUUIDv7 } from 'node:crypto';
import { ReportArtifactResponse } from '@runyard/contract/agent/agent-protocol';
import { ArtifactResponse, ArtifactSharing } from '@runyard/contract/runs/artifacts';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const execution = await service.startExecution();

const report = async (artifact_type: string, data: object, runToken = execution.runToken) =>
  ReportArtifactResponse.parse(
    await service.ok('POST', '/harness-support/report-artifact', { key: runToken, body: { artifact_type, data } }),
  );

const upload = async (artifactType: 'FILE' | 'SCREENSHOT', data: object, bytes = 'hello') => {
  const { artifact_uid, upload_url } = await report(artifactType, data);
  await service.ok('PUT', upload_url ?? '', { key: null, raw: bytes });
  return artifact_uid;
};
const file = (bytes?: string) => upload('FILE', { filename: 'a.txt', filepath: '/secret/a.txt' }, bytes);

const share = async (uid: string) => ArtifactSharing.parse(await service.ok('POST', `/agent/artifacts/${uid}/share`));

const blobKeys = async (uid: string) => {
  const keys = [];
  for await (const { key } of service.deps.blobs.list()) if (key.includes(uid)) keys.push(key);
  return keys;
};

describe('POST /agent/artifacts/{artifactUid}/share', () => {
  test('lets everyone download a FILE, but hides its path in the sandbox', async () => {
    const uid = await file('shared');
    const { public_url, is_public } = await share(uid);
    expect(is_public).toBe(true);
    const redirect = await service.request('GET', public_url ?? '', { key: null });
    expect(redirect.status).toBe(302);
    const bytes = await service.request('GET', redirect.headers.get('location') ?? '', { key: null });
    expect([bytes.status, bytes.text]).toEqual([200, 'shared']);
    const read = await service.request('GET', `/agent/artifacts/${uid}`, { key: null });
    expect(ArtifactResponse.parse(read.body)).toMatchObject({ data: { filename: 'a.txt' } });
    expect(read.text).not.toContain('secret');
    expect(read.text).not.toContain('is_public');
  });

  test('lets everyone read a PLAN inline and see a SCREENSHOT', async () => {
    const plan = await report('PLAN', { title: 'Plan', content: '# Steps' });
    const { public_url } = await share(plan.artifact_uid);
    const read = await service.request('GET', public_url ?? '', { key: null });
    expect(ArtifactResponse.parse(read.body)).toMatchObject({ data: { content: '# Steps' } });
    const picture = await share(await upload('SCREENSHOT', {}));
    expect((await service.request('GET', picture.public_url ?? '', { key: null })).status).toBe(302);
  });

  test("notifies the team's stream and may be repeated", async () => {
    const uid = await file();
    expect((await service.request('GET', `/agent/artifacts/${uid}`)).text).not.toContain('is_public');
    expect(await share(uid)).toEqual(await share(uid));
    expect(await service.ok('GET', `/agent/artifacts/${uid}`)).toMatchObject({ is_public: true });
  });

  test.each([
    ['PULL_REQUEST', { url: 'https://example.com/pull/1', branch: 'b' }],
    ['EXTERNAL_REFERENCE', { url: 'https://example.com/1', reference_type: 'issue' }],
  ])('answers 400 for a %s, because there is nothing to download, and leaves it private', async (type, data) => {
    const { artifact_uid } = await report(type, data);
    const problem = await service.problem(400, 'POST', `/agent/artifacts/${artifact_uid}/share`);
    expect(problem.error_code).toBe('operation_not_supported');
    await service.problem(401, 'GET', `/agent/artifacts/${artifact_uid}`, { key: null });
  });

  test('answers 404 for a file whose bytes have not arrived, and for another team', async () => {
    const { artifact_uid } = await report('FILE', { filename: 'a' });
    await service.problem(404, 'POST', `/agent/artifacts/${artifact_uid}/share`);
    const uid = await file();
    await service.problem(404, 'POST', `/agent/artifacts/${uid}/share`, { key: service.otherKey });
    await service.problem(401, 'GET', `/agent/artifacts/${uid}`, { key: null });
  });
});

describe('DELETE /agent/artifacts/{artifactUid}/share', () => {
  test('makes the artifact private again', async () => {
    const uid = await file();
    await share(uid);
    const answer = await service.request('DELETE', `/agent/artifacts/${uid}/share`);
    expect(ArtifactSharing.parse(answer.body)).toEqual({ artifact_uid: uid, is_public: false });
    await service.problem(401, 'GET', `/agent/artifacts/${uid}`, { key: null });
    await service.problem(401, 'GET', `/agent/artifacts/${uid}/download`, { key: null });
    expect((await service.request('GET', `/agent/artifacts/${uid}`)).status).toBe(200);
  });

  test('answers 404 for another team, and the artifact stays public', async () => {
    const uid = await file();
    await share(uid);
    await service.problem(404, 'DELETE', `/agent/artifacts/${uid}/share`, { key: service.otherKey });
    expect((await service.request('GET', `/agent/artifacts/${uid}`, { key: null })).status).toBe(200);
  });
});

describe('DELETE /agent/artifacts/{artifactUid}', () => {
  test('removes row and bytes of the artifact, and its signed URLs answer 404 at once', async () => {
    const uid = await file();
    const url = (await service.request('GET', `/agent/artifacts/${uid}/download`)).headers.get('location') ?? '';
    expect((await service.request('GET', url, { key: null })).status).toBe(200);
    expect(await blobKeys(uid)).toHaveLength(1);
    const answer = await service.request('DELETE', `/agent/artifacts/${uid}`);
    expect([answer.status, answer.body]).toEqual([200, { success: true }]);
    await service.problem(404, 'GET', url, { key: null });
    await service.problem(404, 'GET', `/agent/artifacts/${uid}`);
    await service.problem(404, 'DELETE', `/agent/artifacts/${uid}`);
    expect(await blobKeys(uid)).toEqual([]);
    const run = await service.request('GET', `/agent/runs/${execution.runId}`);
    expect(run.text).not.toContain(uid);
  });

  test('refuses an upload that starts after the delete', async () => {
    const { artifact_uid, upload_url } = await report('FILE', { filename: 'a' });
    expect((await service.request('DELETE', `/agent/artifacts/${artifact_uid}`)).status).toBe(200);
    await service.problem(404, 'PUT', upload_url ?? '', { key: null, raw: 'late' });
    expect(await blobKeys(artifact_uid)).toEqual([]);
  });

  test('succeeds and logs a failure if the bytes cannot be removed now', async () => {
    const uid = await file();
    const { delete: remove } = service.deps.blobs;
    Object.assign(service.deps.blobs, { delete: async () => Promise.reject(new Error('the disk is read-only')) });
    try {
      expect((await service.request('DELETE', `/agent/artifacts/${uid}`)).status).toBe(200);
    } finally {
      Object.assign(service.deps.blobs, { delete: remove });
    }
    await service.problem(404, 'GET', `/agent/artifacts/${uid}`);
    expect(service.logged.join('')).toContain('left to the nightly sweep');
  });

  test('answers 404 for another team and leaves the artifact, even if it is public', async () => {
    const uid = await file();
    await share(uid);
    await service.problem(404, 'DELETE', `/agent/artifacts/${uid}`, { key: service.otherKey });
    await service.problem(401, 'DELETE', `/agent/artifacts/${uid}`, { key: null });
    expect((await service.request('GET', `/agent/artifacts/${uid}`)).status).toBe(200);
  });
});

describe('GET /agent/run-by-external-reference', () => {
  const find = (url: string, key = service.key) =>
    service.request('GET', `/agent/run-by-external-reference?url=${encodeURIComponent(url)}`, { key });

  test('finds the run by any spelling of the locator', async () => {
    await report('EXTERNAL_REFERENCE', { reference_type: 'issue', url: 'HTTPS://Tracker.Example:443/I/7/#comment-2' });
    for (const url of [
      'https://tracker.example/I/7',
      'https://TRACKER.example/I/7//',
      'https://tracker.example:443/I/7#x',
    ]) {
      expect((await find(url)).body, url).toEqual({ run_id: execution.runId });
    }
    expect((await find('https://tracker.example/i/7')).status).toBe(404);
    expect((await find('http://tracker.example/I/7')).status).toBe(404);
    expect((await find('https://tracker.example/I/7?tab=1')).status).toBe(404);
  });

  test('returns the newest run if several runs have the reference', async () => {
    const url = 'https://tracker.example/shared';
    const later = await service.startExecution();
    await report('EXTERNAL_REFERENCE', { reference_type: 'issue', url }, later.runToken);
    await report('EXTERNAL_REFERENCE', { reference_type: 'issue', url });
    expect((await find(url)).body).toEqual({ run_id: later.runId });
  });

  test('answers 404 for no match, for a pull request, for another team and for a locator that is not a web address', async () => {
    const url = 'https://tracker.example/mine';
    await report('EXTERNAL_REFERENCE', { reference_type: 'issue', url });
    await report('PULL_REQUEST', { url: 'https://tracker.example/pull/1', branch: 'b' });
    for (const [asked, key] of [
      [url, service.otherKey],
      ['https://tracker.example/pull/1', service.key],
      ['https://tracker.example/other', service.key],
      ['not a web address', service.key],
    ] as const) {
      expect((await find(asked, key)).status, asked).toBe(404);
    }
  });

  test('answers 400 for a missing or empty url, and for a url of more than 2048 characters', async () => {
    await service.problem(400, 'GET', '/agent/run-by-external-reference');
    const path = (url: string) => `/agent/run-by-external-reference?url=${url}`;
    const problem = await service.problem(400, 'GET', path(''));
    expect(problem.errors?.[0]?.path).toBe('url');
    await service.problem(400, 'GET', path(`https://e.com/${'a'.repeat(2048 - 13)}`));
    await service.problem(404, 'GET', path(`https://e.com/${'a'.repeat(2048 - 14)}`));
    await service.problem(400, 'GET', path('https://e.com/%00'));
  });

  test('accepts locators of 2048 characters, and refuses locators that are longer after encoding', async () => {
    const random = Array.from({ length: 100 }, randomUUIDv7).join('');
    const url = `https://e.com/${random}`.slice(0, 2048);
    await report('EXTERNAL_REFERENCE', { reference_type: 'x', url });
    expect((await find(url)).body).toEqual({ run_id: execution.runId });
    await service.problem(400, 'POST', '/harness-support/report-artifact', {
      key: execution.runToken,
      body: {
        artifact_type: 'EXTERNAL_REFERENCE',
        data: { reference_type: 'x', url: `https://e.com/${'€'.repeat(1000)}` },
      },
    });
  });
});

test('a PULL_REQUEST that is reported again updates the same artifact', async () => {
  const other = await service.startExecution();
  const first = await report('PULL_REQUEST', { url: 'https://e.com/o/r/pull/1', branch: 'HEAD' }, other.runToken);
  const second = await report('PULL_REQUEST', { url: 'https://E.com/o/r/pull/1/', branch: 'fix' }, other.runToken);
  expect(second.artifact_uid).toBe(first.artifact_uid);
  await report('PULL_REQUEST', { url: 'https://e.com/o/r/pull/2', branch: 'fix' }, other.runToken);
  const body = await service.ok<{ artifacts: object[] }>('GET', `/agent/runs/${other.runId}`);
  expect(body.artifacts).toMatchObject([
    { data: { url: 'https://E.com/o/r/pull/1/', branch: 'fix' } },
    { data: { url: 'https://e.com/o/r/pull/2' } },
  ]);
});
