/**
 * Stores blobs as objects `{prefix}/{key}` in a bucket of S3 or of another server with the protocol of S3. Credentials, region and endpoint
 * are those that the AWS SDK finds: in variables (`AWS_ACCESS_KEY_ID`, `AWS_REGION`, `AWS_ENDPOINT_URL_S3`, …), in its files, or from the
 * role of the machine.
 */
import { createHash } from 'node:crypto';
import https from 'node:https';
import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type PutObjectCommandInput,
  paginateListObjectsV2,
  S3Client,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { http } from '@runyard/system/node-http';
import { optionsOfProxy } from '@runyard/system/outgoing/outgoing';
import type { StoreLog } from '../database/log.ts';
import { StoreUnavailable } from '../database/unavailable.ts';
import { type BlobStore, type ByteRange, checkBlobKey, isBlobKey, type ListedBlob, type PutOutcome } from './blobs.ts';
import { absent, reached, statusOf } from './s3-errors.ts';
import { type BucketFeatures, type DoOptional, makeOptional, makeReader } from './s3-features.ts';
import { openProbe, probeName, type S3Address } from './s3-probe.ts';

/**
 * A larger body is sent in parts of this size, two parts at a time. So an upload holds 16 MiB in memory. A body can have up to 10,000
 * parts, which are 80 GiB.
 */
const partBytes = 8 * 1024 * 1024;

const connectMs = 3_000;
const attempts = 3;

/** An unfinished upload of this age is abandoned: no process can still be sending it. */
const abandonedAfterMs = 24 * 3600 * 1000;

export interface S3BlobsOptions {
  /** How the bucket encrypts the objects: `AES256`, `aws:kms`, or `aws:kms:` and the id of a key. Undefined: the default of the bucket. */
  readonly encryption: string | undefined;
  /** True: clients read blobs directly from the bucket, with presigned URLs. */
  readonly presigns: boolean;
  readonly log: Pick<StoreLog, 'warn'>;
  /** A request fails if its connection transfers no byte for this many milliseconds. Default: 30,000. */
  readonly silentMs?: number;
}

/** Opens the blob store in a bucket. Sends no request; `problem` checks whether the bucket can be used. */
export async function openS3Blobs(
  address: S3Address,
  { encryption, presigns, log, silentMs = 30_000 }: S3BlobsOptions,
): Promise<BlobStore> {
  const { bucket, prefix } = address;
  const features: BucketFeatures = { checksums: true, conditions: true };
  const client = await makeClient(silentMs, features);
  const nameOf = (key: string): string => {
    checkBlobKey(key);
    return prefix + key;
  };
  const object = (key: string) => ({ Bucket: bucket, Key: nameOf(key) });
  const encrypted = encryptionHeaders(encryption);
  const probe = openProbe(client, address, { encrypted, presigns, features, log });
  const optional = makeOptional(log);
  const reader = makeReader(features, log);
  const used = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await reached(work);
    } catch (error) {
      if (error instanceof StoreUnavailable) probe.doubt();
      throw error;
    }
  };
  const read = <T>(send: () => Promise<T>) => used(reader(send));
  const upload = async (params: Partial<PutObjectCommandInput>, body: Readable) => {
    await used(probe.settle());
    await used(
      new Upload({
        client,
        params: { ...encrypted, ...params, Bucket: bucket, Key: params.Key, Body: body },
        partSize: partBytes,
        queueSize: 2,
      }).done(),
    );
  };

  const stat = async (key: string) => {
    const params = object(key);
    try {
      const { ContentLength = 0 } = await read(() => client.send(new HeadObjectCommand(params)));
      return { sizeBytes: ContentLength };
    } catch (error) {
      return absent(error);
    }
  };

  return {
    async put(key, body, { maxBytes }): Promise<PutOutcome> {
      const counted = count(body, maxBytes);
      try {
        await upload(object(key), Readable.from(counted.pieces(), { objectMode: false }));
      } catch (error) {
        if (counted.isTooLarge()) return { outcome: 'too_large' };
        throw counted.fault() ?? error;
      }
      return { outcome: 'stored', ...counted.sums() };
    },
    async putIfAbsent(key, body) {
      const counted = count(body, Number.MAX_SAFE_INTEGER);
      try {
        await used(probe.settle());
        if (!features.conditions && (await stat(key)) !== undefined) return false;
        const condition = features.conditions ? { IfNoneMatch: '*' } : {};
        await upload({ ...object(key), ...condition }, Readable.from(counted.pieces(), { objectMode: false }));
        return true;
      } catch (error) {
        // 412: the key already has a blob. 409: another upload of the key ended during this upload.
        if ([409, 412].includes(statusOf(error))) return false;
        throw counted.fault() ?? error;
      }
    },
    async get(key, range) {
      if (range !== undefined && range.end < range.start) return withoutBytes(await stat(key));
      const params = { ...object(key), ...rangeOf(range) };
      try {
        const answer = await read(() => client.send(new GetObjectCommand(params)));
        const [, total] = /\/(\d+)$/.exec(answer.ContentRange ?? '') ?? [];
        return { sizeBytes: Number(total ?? answer.ContentLength), stream: readableOf(answer.Body) };
      } catch (error) {
        if (statusOf(error) === 416) return withoutBytes(await stat(key));
        return absent(error);
      }
    },
    stat,
    async delete(key) {
      await used(client.send(new DeleteObjectCommand(object(key)))).catch(absent);
    },
    async *list() {
      await abortAbandoned(client, address, optional);
      for await (const page of reachedPages(paginateListObjectsV2({ client }, { Bucket: bucket, Prefix: prefix }))) {
        for (const { Key = '', Size = 0, LastModified = new Date() } of page.Contents ?? []) {
          const key = Key.slice(prefix.length);
          if (isBlobKey(key)) yield { key, sizeBytes: Size, storedAt: LastModified } satisfies ListedBlob;
          else if (key.startsWith(probeName) && LastModified.getTime() < Date.now() - abandonedAfterMs)
            await client.send(new DeleteObjectCommand({ Bucket: bucket, Key })).catch(() => undefined);
        }
      }
    },
    async presign(key, { contentType, contentDisposition, seconds }) {
      if (!presigns) return null;
      const headers = { ResponseContentType: contentType, ResponseContentDisposition: contentDisposition };
      const command = new GetObjectCommand({ ...object(key), ...headers, ResponseCacheControl: 'private, no-store' });
      return await reached(getSignedUrl(client, command, { expiresIn: seconds }));
    },
    problem: (options) => probe.problem(options),
  };
}

function encryptionHeaders(encryption: string | undefined): Partial<PutObjectCommandInput> {
  if (encryption === undefined) return {};
  if (encryption === 'AES256') return { ServerSideEncryption: 'AES256' };
  const key = encryption.slice('aws:kms:'.length);
  return { ServerSideEncryption: 'aws:kms', ...(key === '' ? {} : { SSEKMSKeyId: key }) };
}

async function makeClient(silentMs: number, features: BucketFeatures): Promise<S3Client> {
  // Sends no request. It is opened only for the values that the SDK finds in its variables and files.
  const { config: found } = new S3Client({});
  // If the files cannot be read, each request fails with the reason.
  const endpoint = await found.serviceConfiguredEndpoint?.().catch(() => undefined);
  let regionOfNone: string | undefined;
  return new S3Client({
    // Other servers than Amazon's do not have a separate host name for each bucket, so the path names the bucket.
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
    region: async () => {
      if (regionOfNone !== undefined) return regionOfNone;
      try {
        return await found.region();
      } catch (error) {
        if (endpoint === undefined || !/is missing|region=""/.test((error as Error).message)) throw error;
        // Most other servers have no regions, so any region is right.
        regionOfNone = process.env.AWS_DEFAULT_REGION || 'us-east-1';
        return regionOfNone;
      }
    },
    requestChecksumCalculation: async () =>
      features.checksums ? await found.requestChecksumCalculation() : 'WHEN_REQUIRED',
    responseChecksumValidation: async () =>
      features.checksums ? await found.responseChecksumValidation() : 'WHEN_REQUIRED',
    maxAttempts: attempts,
    requestHandler: {
      ...{ connectionTimeout: connectMs, requestTimeout: silentMs, throwOnRequestTimeout: true },
      ...agentsOfProxy(),
    },
  });
}

/** Without a proxy, the SDK makes the agents itself. */
function agentsOfProxy() {
  const options = optionsOfProxy();
  if (options === undefined) return {};
  const all = { keepAlive: true, maxSockets: 50, ...options };
  return { httpAgent: new http.Agent(all), httpsAgent: new https.Agent(all) };
}

const rangeOf = (range: ByteRange | undefined) =>
  range === undefined ? {} : { Range: `bytes=${range.start}-${Math.min(range.end, Number.MAX_SAFE_INTEGER)}` };

function readableOf(body: unknown): Readable {
  if (body instanceof Readable) return body;
  throw new Error('the bucket answered without a body');
}

const withoutBytes = (found: { readonly sizeBytes: number } | undefined) =>
  found && { ...found, stream: Readable.from([], { objectMode: false }) };

/** Counts and hashes the pieces of a body while they are sent, and stops at `maxBytes`. */
function count(body: AsyncIterable<Uint8Array>, maxBytes: number) {
  const hash = createHash('sha256');
  let sizeBytes = 0;
  let fault: { readonly error: unknown } | undefined;
  /**
   * Stores the error if reading `body` fails. An error of the upload is not stored, because it is thrown into `pieces` and does not reach
   * this function.
   */
  async function* noted(): AsyncGenerator<Uint8Array> {
    try {
      yield* body;
    } catch (error) {
      fault = { error };
      throw error;
    }
  }
  return {
    async *pieces(): AsyncGenerator<Uint8Array> {
      for await (const piece of noted()) {
        sizeBytes += piece.byteLength;
        if (sizeBytes > maxBytes) throw new RangeError(`the body has more than ${maxBytes} bytes`);
        hash.update(piece);
        yield piece;
      }
    },
    isTooLarge: () => sizeBytes > maxBytes,
    /** Returns the error with which reading `body` failed. Undefined: `body` did not fail. */
    fault: () => fault?.error,
    sums: () => ({ sizeBytes, sha256: hash.digest() }),
  };
}

async function* reachedPages<T>(pages: AsyncIterable<T>): AsyncGenerator<T> {
  const iterator = pages[Symbol.asyncIterator]();
  for (;;) {
    const next = await reached(iterator.next());
    if (next.done) return;
    yield next.value;
  }
}

/**
 * Aborts at most 1,000 abandoned multipart uploads of dead processes. Without this, the bucket would keep the parts of these uploads
 * forever, and nobody would notice, because the list of objects does not show parts.
 */
async function abortAbandoned(client: S3Client, { bucket, prefix }: S3Address, optional: DoOptional): Promise<void> {
  const list = client.send(new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: prefix }));
  const { Uploads = [] } = (await optional('ListMultipartUploads', list)) ?? {};
  for (const { Key, UploadId, Initiated } of Uploads) {
    if (Initiated === undefined || Initiated.getTime() > Date.now() - abandonedAfterMs) continue;
    const abort = client.send(new AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId })).catch(absent);
    await optional('AbortMultipartUpload', abort);
  }
}
