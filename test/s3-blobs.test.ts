/** Tests blobs in a bucket of a real S3 server: the blob store itself, its errors, and a service that uses it. */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BlobStore } from '../packages/service/src/platform/store/blobs/blobs.ts';
import { openFolderBlobs } from '../packages/service/src/platform/store/blobs/folder-blobs.ts';
import { copyBlobs } from '../packages/service/src/platform/store/blobs/move-blobs.ts';
import { openS3Blobs } from '../packages/service/src/platform/store/blobs/s3-blobs.ts';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { StoreUnavailable } from '../packages/service/src/platform/store/database/unavailable.ts';
import { describeBlobStore } from '../packages/service/test/blob-store.ts';
import { connectMcp } from '../packages/service/test/mcp.ts';
import { unfinishedUploads } from '../packages/service/test/s3-uploads.ts';
import { startTestService, type TestService } from '../packages/service/test/service.ts';
import { startFakeBucket } from './fakes/s3-bucket.ts';
import { type S3Server, startS3Server } from './support/s3-server.ts';
import { eventually } from './support/system.ts';
import { withVariables } from './support/variables.ts';

const started = await startS3Server();
const server: S3Server | undefined = started.kind === 'ready' ? started.server : undefined;

let prefixes = 0;
const options = { encryption: undefined, presigns: true, log: silentLog };
const openAt = (prefix: string, bucket = server?.bucket ?? ''): Promise<BlobStore> =>
  openS3Blobs({ kind: 's3', bucket, prefix }, options);
const newStore = async () => {
  prefixes += 1;
  return await openAt(`test-${prefixes}/`);
};
const bytesOf = async (blobs: BlobStore, key: string) => {
  const blob = await blobs.get(key);
  return blob && (await buffer(blob.stream));
};
const put = (blobs: BlobStore, key: string, bytes: Buffer) =>
  blobs.put(key, Readable.from([bytes]), { maxBytes: 100_000_000 });

/** Stores a file of a run through the routes for agents. Returns the path of the download. */
async function storeFile(service: TestService, text: string, type = 'text/plain'): Promise<string> {
  const { runToken: key } = await service.startExecution();
  const body = { artifact_type: 'FILE', data: { filename: 'a.txt', mime_type: type } };
  const path = '/harness-support/report-artifact';
  const { artifact_uid, upload_url } = (
    await service.request<{ artifact_uid: string; upload_url: string }>('POST', path, { key, body })
  ).body;
  const headers = { 'content-type': type };
  expect((await service.request('PUT', upload_url, { key: null, raw: text, headers })).status).toBe(200);
  return `/agent/artifacts/${artifact_uid}`;
}

describe.skipIf(!server)(`a bucket${started.kind === 'missing' ? ` (skipped: ${started.reason})` : ''}`, () => {
  const before = { ...process.env };
  beforeAll(() => void Object.assign(process.env, server?.env));
  afterAll(async () => {
    for (const name of Object.keys(server?.env ?? {})) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
    await server?.stop();
  });

  describeBlobStore('as a store', newStore);

  test('stores a large body in several parts, and returns a range that covers bytes of two parts', async () => {
    const blobs = await newStore();
    const bytes = randomBytes(20 * 1024 * 1024);
    const pieces = Array.from({ length: 80 }, (_, index) => bytes.subarray(index * 262_144, (index + 1) * 262_144));
    expect(await blobs.put('k', Readable.from(pieces), { maxBytes: bytes.length })).toMatchObject({
      outcome: 'stored',
      sizeBytes: bytes.length,
    });
    expect((await bytesOf(blobs, 'k'))?.equals(bytes)).toBe(true);
    const [start, end] = [8 * 1024 * 1024 - 10, 8 * 1024 * 1024 + 9];
    const range = await blobs.get('k', { start, end });
    expect(range && (await buffer(range.stream)).equals(bytes.subarray(start, end + 1))).toBe(true);
    expect(await blobs.putIfAbsent('k', Readable.from(pieces))).toBe(false);
  });

  test.each([
    ['breaks off', 'connection lost', 1e9],
    ['is too large', undefined, 20 * 1024 * 1024],
  ])('keeps no part of a large body that %s', async (_what, fault, maxBytes) => {
    const blobs = await openAt('parts/');
    const body = (async function* () {
      for (let piece = 0; piece < 24; piece += 1) yield Buffer.alloc(1024 * 1024, piece);
      throw new Error('connection lost');
    })();
    const stored = blobs.put('k', body, { maxBytes });
    if (fault === undefined) expect(await stored).toEqual({ outcome: 'too_large' });
    else await expect(stored).rejects.toThrow(fault);
    expect(await unfinishedUploads(server?.endpoint ?? '', server?.bucket ?? '')).toEqual([]);
    expect(await blobs.stat('k')).toBeUndefined();
  });

  test('lists only blobs below the prefix of the store', async () => {
    const [inner, beside] = [await openAt('shared/a/'), await openAt('shared/ab/')];
    await put(inner, 'k', Buffer.from('inner'));
    await put(beside, 'k', Buffer.from('beside'));
    const keys: string[] = [];
    for await (const { key } of inner.list()) keys.push(key);
    expect(keys).toEqual(['k']);
    expect((await bytesOf(inner, 'k'))?.toString()).toBe('inner');
  });

  test('opens one object with a presigned URL until the URL expires, and opens no object without such a URL', async () => {
    const blobs = await openAt('presigned/');
    await put(blobs, 'a', Buffer.from('hello'));
    await put(blobs, 'b', Buffer.from('secret'));
    const answer = { contentType: 'text/plain', contentDisposition: 'attachment; filename="a.txt"' };
    const url = (await blobs.presign?.('a', { ...answer, seconds: 60 })) ?? '';
    const read = await fetch(url);
    expect(await read.text()).toBe('hello');
    expect(read.headers.get('content-disposition')).toBe('attachment; filename="a.txt"');
    expect(read.headers.get('content-type')).toBe('text/plain');
    const shortUrl = (await blobs.presign?.('a', { ...answer, seconds: 1 })) ?? '';
    await expect.poll(async () => (await fetch(shortUrl)).status).toBe(403);
    const plain = url.replace(/\?.*/, '');
    const forged = [
      url.replace('/presigned/a?', '/presigned/b?'),
      url.replace('X-Amz-Expires=60', 'X-Amz-Expires=6000'),
      url.replace('a.txt', 'b.html'),
      plain,
      plain.replace('presigned/a', '?list-type=2'),
    ];
    expect(await Promise.all(forged.map(async (each) => (await fetch(each)).status))).toEqual(forged.map(() => 403));
    expect((await fetch(url, { method: 'PUT', body: 'changed' })).status).toBe(403);
    expect((await fetch(url, { method: 'DELETE' })).status).toBe(403);
  });

  test('copies a folder into a bucket and back', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'runyard-copied-'));
    try {
      const [from, to] = [
        await openFolderBlobs(path.join(folder, 'from')),
        await openFolderBlobs(path.join(folder, 'to')),
      ];
      for (const key of ['artifacts/1', 'transcripts/2']) await put(from, key, Buffer.from(key));
      const blobs = await openAt('copied/');
      expect(await copyBlobs(from, blobs)).toMatchObject({ copied: 2 });
      expect(await copyBlobs(blobs, to)).toMatchObject({ copied: 2 });
      expect((await bytesOf(to, 'transcripts/2'))?.toString()).toBe('transcripts/2');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('passes a check that writes, reads, presigns and deletes an object', async () => {
    expect(await (await openAt('checked/')).problem?.()).toBeNull();
  });

  test('reports if the bucket is missing or refuses the credentials', async () => {
    expect(await (await openAt('', 'no-such-bucket')).problem?.()).toEqual({
      text: expect.stringContaining('the bucket no-such-bucket of RUNYARD_BLOBS does not exist'),
      isLasting: true,
    });
    await withVariables({ AWS_SECRET_ACCESS_KEY: 'wrong' }, async () => {
      const problem = await (await openAt('')).problem?.();
      expect(problem?.text).toContain('refuses the credentials');
      expect(problem?.text).not.toContain('wrong');
    });
    await expect(startTestService({ env: { RUNYARD_BLOBS: 's3://no-such-bucket' } })).rejects.toThrow('does not exist');
  });

  describe('of a service', () => {
    let service: TestService;
    beforeAll(async () => {
      service = await startTestService({ env: { RUNYARD_BLOBS: `s3://${server?.bucket}/service` } });
    });
    afterAll(() => service.close());

    test('lets the service redirect downloads to the bucket until the artifact is deleted, but the service sends previews itself', async () => {
      const artifact = await storeFile(service, 'hello from the bucket');
      const signed = (await service.request('GET', `${artifact}/download`)).headers.get('location') ?? '';
      const redirect = await service.request('GET', signed, { key: null });
      expect(redirect.status).toBe(302);
      const place = redirect.headers.get('location') ?? '';
      expect(place).toContain(`${server?.endpoint}/${server?.bucket}/service/artifacts/`);
      const file = await fetch(place);
      expect(await file.text()).toBe('hello from the bucket');
      expect(file.headers.get('content-disposition')).toContain('filename="a.txt"');
      const preview = await service.request<{ url: string }>('GET', `${artifact}/preview`);
      const shown = await service.request('GET', preview.body.url.replace('/api/v1', ''), { key: null });
      expect(shown.text).toBe('hello from the bucket');
      expect((await service.request('DELETE', artifact)).status).toBe(200);
      await service.problem(404, 'GET', signed, { key: null });
      expect((await fetch(place)).status).toBe(404);
    });

    test('lets the service send downloads itself if clients cannot reach the bucket', async () => {
      const env = { RUNYARD_BLOBS: `s3://${server?.bucket}/private`, RUNYARD_BLOBS_DOWNLOADS: 'service' };
      const closed = await startTestService({ env });
      try {
        expect(
          await closed.deps.blobs.presign?.('k', { contentType: '', contentDisposition: '', seconds: 1 }),
        ).toBeNull();
      } finally {
        await closed.close();
      }
    });
  });

  test('gives temporary errors while the S3 server is down, and still has the old blob after a broken upload of a new one', async () => {
    if (!server) throw new Error('there is no server');
    const blobs = await openAt('killed/');
    await put(blobs, 'k', Buffer.from('before'));
    const cut = (async function* () {
      for (let part = 0; part < 40; part += 1) {
        if (part === 20) await server.kill();
        yield Buffer.alloc(1024 * 1024, part);
      }
    })();
    await expect(blobs.put('k', cut, { maxBytes: 100_000_000 })).rejects.toThrow(StoreUnavailable);
    await expect(blobs.get('k')).rejects.toThrow(StoreUnavailable);
    expect(await blobs.problem?.()).toMatchObject({ isLasting: false });
    await server.start();
    // The server answers 500 until its volumes have joined it.
    const read = () =>
      bytesOf(blobs, 'k').catch((error) => (error instanceof StoreUnavailable ? null : Promise.reject(error)));
    expect((await eventually('the volumes of the S3 server', read)).toString()).toBe('before');
    expect(await put(blobs, 'k', Buffer.from('after'))).toMatchObject({ outcome: 'stored' });
    expect((await bytesOf(blobs, 'k'))?.toString()).toBe('after');
  });
});

describe('a fake server', () => {
  const answering = async (answer: RequestListener, work: (blobs: BlobStore) => Promise<void>) => {
    const fake = createServer(answer).listen(0, '127.0.0.1');
    await once(fake, 'listening');
    const { port } = fake.address() as AddressInfo;
    const env = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b', AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}` };
    try {
      await withVariables(env, async () =>
        work(await openS3Blobs({ kind: 's3', bucket: 'b', prefix: '' }, { ...options, silentMs: 300 })),
      );
    } finally {
      fake.closeAllConnections();
      fake.close();
    }
  };

  test.each<[string, RequestListener]>([
    ['an error of its own', (_, answer) => void answer.writeHead(500).end('<Error><Code>InternalError</Code></Error>')],
    ['too many requests', (_, answer) => void answer.writeHead(503).end('<Error><Code>SlowDown</Code></Error>')],
    ['nothing that is XML', (_, answer) => void answer.writeHead(403).end('<html>captive portal')],
    ['nothing', () => {}],
  ])('causes a temporary failure if it answers with %s', async (_, answer) => {
    await answering(answer, async (blobs) => {
      await expect(blobs.get('k')).rejects.toThrow(StoreUnavailable);
      await expect(put(blobs, 'k', Buffer.from('x'))).rejects.toThrow(StoreUnavailable);
    });
  });

  test('gets requests for the encryption that the settings name', async () => {
    const seen: Record<string, unknown>[] = [];
    const note: RequestListener = (request, answer) => {
      const { 'x-amz-server-side-encryption': kind, 'x-amz-server-side-encryption-aws-kms-key-id': key } =
        request.headers;
      if (request.method === 'PUT') seen.push({ kind, key });
      request.resume().on('end', () => answer.writeHead(200, { etag: '"1"' }).end());
    };
    await answering(note, async () => {
      for (const encryption of ['AES256', 'aws:kms', 'aws:kms:arn:aws:kms:eu-west-1:1:key/k', undefined])
        await put(
          await openS3Blobs({ kind: 's3', bucket: 'b', prefix: '' }, { ...options, encryption }),
          'k',
          Buffer.from('x'),
        );
    });
    // Each store writes a small object first.
    expect(seen.filter((_, index) => index % 2 === 0)).toEqual(seen.filter((_, index) => index % 2 === 1));
    expect(seen.filter((_, index) => index % 2 === 1)).toEqual([
      { kind: 'AES256' },
      { kind: 'aws:kms' },
      { kind: 'aws:kms', key: 'arn:aws:kms:eu-west-1:1:key/k' },
      {},
    ]);
  });

  test('sends redirected downloads with a harmless content type, and MCP tools read artifacts through the service', async () => {
    const fake = await startFakeBucket();
    await withVariables(fake.env, async () => {
      const service = await startTestService({ env: { RUNYARD_BLOBS: 's3://bucket' } });
      try {
        const artifact = await storeFile(service, 'hello');
        const signed = (await service.request('GET', `${artifact}/download`)).headers.get('location') ?? '';
        const redirect = await service.request('GET', signed, { key: null });
        expect(redirect.status).toBe(302);
        expect(redirect.headers.get('location')).toMatch(/\/bucket\/artifacts\/.*X-Amz-Signature=/);
        const given = async (type: string): Promise<string | null> => {
          const download = await service.request('GET', `${await storeFile(service, 'hello', type)}/download`);
          const sent = await service.request('GET', download.headers.get('location') ?? '', { key: null });
          return new URL(sent.headers.get('location') ?? '').searchParams.get('response-content-type');
        };
        expect(await given('text/csv')).toBe('text/csv');
        for (const type of ['text/html; charset=utf-8', 'image/svg+xml', 'application/XML'])
          expect(await given(type)).toBe('application/octet-stream');
        const { client, call } = await connectMcp(`${service.baseUrl}/mcp`, service.key);
        const { texts } = await call('get_artifact', { artifact_uid: artifact.split('/').at(-1) });
        expect(texts.at(-1)).toBe('hello');
        await client.close();
      } finally {
        await service.close();
        await fake.close();
      }
    });
  });
});
