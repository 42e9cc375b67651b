/**
 * Stores blobs as objects `{prefix}/{key}` in a bucket of S3 or of another server with the protocol of S3. Credentials, region and endpoint come from
 * the standard variables and files of the AWS SDK (`AWS_ACCESS_KEY_ID`, `AWS_REGION`, `AWS_ENDPOINT_URL_S3`, machine roles, …).
 */
import { createHash } from 'node:crypto';
import https from 'node:https';
import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  type PutObjectCommandInput,
  paginateListObjectsV2,
  S3Client,
  type S3ServiceException,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import type { BlobsAddress } from '@runyard/contract/settings/blobs';
import { http } from '@runyard/system/node-http';
import { optionsOfProxy } from '@runyard/system/outgoing/outgoing';
import { StoreUnavailable } from '../database/unavailable.ts';
import {
  type BlobStore,
  type BlobsProblem,
  type ByteRange,
  checkBlobKey,
  isBlobKey,
  type ListedBlob,
  type PutOutcome,
} from './blobs.ts';

/**
 * A larger body is sent in parts of this size, two parts at a time. So an upload holds 16 MiB in memory. A body can have up to 10,000
 * parts, which are 80 GiB.
 */
const partBytes = 8 * 1024 * 1024;

const connectMs = 3_000;
const attempts = 3;

/** An unfinished upload of this age is abandoned: no process can still be sending it. */
const abandonedAfterMs = 24 * 3600 * 1000;

type S3Address = Extract<BlobsAddress, { kind: 's3' }>;

export interface S3BlobsOptions {
  /** How the bucket encrypts the objects: `AES256`, `aws:kms`, or `aws:kms:` and the id of a key. Undefined: the default of the bucket. */
  readonly encryption: string | undefined;
  /** True: clients read blobs directly from the bucket, with presigned URLs. */
  readonly presigns: boolean;
  /** A request fails if its connection transfers no byte for this many milliseconds. Default: 30,000. */
  readonly silentMs?: number;
}

/** Opens the blob store in a bucket. Sends no request; `problem` checks whether the bucket can be used. */
export function openS3Blobs(
  address: S3Address,
  { encryption, presigns, silentMs = 30_000 }: S3BlobsOptions,
): BlobStore {
  const { bucket, prefix } = address;
  const client = makeClient(silentMs);
  const nameOf = (key: string): string => {
    checkBlobKey(key);
    return prefix + key;
  };
  const object = (key: string) => ({ Bucket: bucket, Key: nameOf(key) });
  const encrypted = encryptionHeaders(encryption);
  const upload = (params: Partial<PutObjectCommandInput>, body: Readable) =>
    reached(
      new Upload({
        client,
        params: { ...encrypted, ...params, Bucket: bucket, Key: params.Key, Body: body },
        partSize: partBytes,
        queueSize: 2,
      }).done(),
    );

  const stat = async (key: string) => {
    try {
      const { ContentLength = 0 } = await reached(client.send(new HeadObjectCommand(object(key))));
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
        await upload({ ...object(key), IfNoneMatch: '*' }, Readable.from(counted.pieces(), { objectMode: false }));
        return true;
      } catch (error) {
        // 412: the key already has a blob. 409: another upload of the key ended during this upload.
        if ([409, 412].includes(statusOf(error))) return false;
        throw counted.fault() ?? error;
      }
    },
    async get(key, range) {
      if (range !== undefined && range.end < range.start) return withoutBytes(await stat(key));
      try {
        const answer = await reached(client.send(new GetObjectCommand({ ...object(key), ...rangeOf(range) })));
        const [, total] = /\/(\d+)$/.exec(answer.ContentRange ?? '') ?? [];
        return { sizeBytes: Number(total ?? answer.ContentLength), stream: readableOf(answer.Body) };
      } catch (error) {
        if (statusOf(error) === 416) return withoutBytes(await stat(key));
        return absent(error);
      }
    },
    stat,
    async delete(key) {
      await reached(client.send(new DeleteObjectCommand(object(key)))).catch(absent);
    },
    async *list() {
      await abortAbandoned(client, address);
      for await (const page of reachedPages(paginateListObjectsV2({ client }, { Bucket: bucket, Prefix: prefix }))) {
        for (const { Key = '', Size = 0, LastModified = new Date() } of page.Contents ?? []) {
          const key = Key.slice(prefix.length);
          if (isBlobKey(key)) yield { key, sizeBytes: Size, storedAt: LastModified } satisfies ListedBlob;
        }
      }
    },
    async presign(key, { contentType, contentDisposition, seconds }) {
      if (!presigns) return null;
      const headers = { ResponseContentType: contentType, ResponseContentDisposition: contentDisposition };
      const command = new GetObjectCommand({ ...object(key), ...headers, ResponseCacheControl: 'private, no-store' });
      return await reached(getSignedUrl(client, command, { expiresIn: seconds }));
    },
    problem: () => findProblem(client, address),
  };
}

function encryptionHeaders(encryption: string | undefined): Partial<PutObjectCommandInput> {
  if (encryption === undefined) return {};
  if (encryption === 'AES256') return { ServerSideEncryption: 'AES256' };
  const key = encryption.slice('aws:kms:'.length);
  return { ServerSideEncryption: 'aws:kms', ...(key === '' ? {} : { SSEKMSKeyId: key }) };
}

function makeClient(silentMs: number): S3Client {
  const { AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION } = process.env;
  const endpoint = AWS_ENDPOINT_URL_S3 ?? AWS_ENDPOINT_URL;
  return new S3Client({
    // Other servers than Amazon's do not have a separate host name for each bucket, so the path names the bucket. Most of them have no
    // regions, so any region is right.
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    ...(endpoint === undefined ? {} : { region: AWS_REGION ?? AWS_DEFAULT_REGION ?? 'us-east-1' }),
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

const statusOf = (error: unknown): number => {
  const known = error instanceof StoreUnavailable ? error.cause : error;
  return (known as Partial<S3ServiceException> | undefined)?.$metadata?.httpStatusCode ?? 0;
};

/** Returns undefined if the error says that an object is missing, and throws every other error. If the bucket is missing, throws. */
function absent(error: unknown): undefined {
  const { name } = error as Error;
  if (statusOf(error) === 404 && name !== 'NoSuchBucket') return undefined;
  throw error;
}

/** Statuses with which a bucket answers in normal use: the object is missing, the range is outside of the object, or a condition is not met. */
const plainStatuses = [404, 409, 412, 416];

/**
 * Throws `StoreUnavailable` if the bucket cannot do a request, for example because of a missing connection, wrong credentials, too
 * many requests or an error of the bucket.
 */
async function reached<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw isPlain(error)
      ? error
      : new StoreUnavailable('blobs', error instanceof Error ? error : new Error(String(error)));
  }
}

const isPlain = (error: unknown): boolean =>
  plainStatuses.includes(statusOf(error)) && (error as Error).name !== 'NoSuchBucket';

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
async function abortAbandoned(client: S3Client, { bucket, prefix }: S3Address): Promise<void> {
  const { Uploads = [] } = await reached(
    client.send(new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: prefix })),
  );
  for (const { Key, UploadId, Initiated } of Uploads) {
    if (Initiated === undefined || Initiated.getTime() > Date.now() - abandonedAfterMs) continue;
    await reached(client.send(new AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId }))).catch(absent);
  }
}

async function findProblem(client: S3Client, { bucket, prefix }: S3Address): Promise<BlobsProblem | null> {
  const lasting = (text: string) => ({ text, isLasting: true });
  const where = `the bucket ${bucket} of RUNYARD_BLOBS`;
  try {
    await client.send(new HeadBucketCommand({ Bucket: bucket }));
    await client.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, MaxKeys: 1 }));
    return null;
  } catch (error) {
    const { name, message } = error as Error;
    switch (statusOf(error)) {
      case 404:
        return lasting(`${where} does not exist; create it, or correct the setting`);
      case 401:
      case 403:
        return lasting(
          `${where} refuses the credentials (${name}); they need s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject, s3:ListBucketMultipartUploads and s3:AbortMultipartUpload`,
        );
      case 301:
        return lasting(`${where} is in another region; set AWS_REGION`);
      default:
        return { text: `${where} cannot be reached: ${message || name}`, isLasting: false };
    }
  }
}
