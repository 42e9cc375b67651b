/** Checks a bucket by the requests of the work, with a small object of its own. */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type PutObjectCommandInput,
  type S3Client,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import type { BlobsAddress } from '@runyard/contract/settings/blobs';
import type { StoreLog } from '../database/log.ts';
import type { BlobStore } from './blobs.ts';
import { absent } from './s3-errors.ts';
import { type BucketFeatures, findFeatures } from './s3-features.ts';
import { ProbeMismatch, type ProbeRequests, probeBucket } from './s3-problem.ts';

/** A bucket, with the prefix of the names of its objects. */
export type S3Address = Extract<BlobsAddress, { kind: 's3' }>;

/**
 * Longest time between two checks that write. Such a check costs four requests and, in a bucket that keeps versions, a version. If a
 * request of the service fails, the next check writes too.
 */
const writeEveryMs = 5 * 60_000;

/** The names of the objects of checks begin with this. It begins with a dot, so no blob has such a name. */
export const probeName = '.runyard-check-';
const content = 'written by Runyard to check the bucket';

const allSteps = ['list', 'write', 'read', 'open', 'delete'] as const;

export interface Probe {
  /** Waits until the features of the bucket are known. A body can be sent only once, so the first call writes a small object. */
  settle(): Promise<void>;
  /** Makes the next check write an object. */
  doubt(): void;
  readonly problem: NonNullable<BlobStore['problem']>;
}

interface ProbeOptions {
  readonly encrypted: Partial<PutObjectCommandInput>;
  readonly presigns: boolean;
  /** Gets the features that the bucket has. */
  readonly features: BucketFeatures;
  readonly log: Pick<StoreLog, 'warn'>;
}

/** Opens the check of a bucket. Sends no request. */
export function openProbe(
  client: S3Client,
  { bucket, prefix }: S3Address,
  { encrypted, presigns, features, log }: ProbeOptions,
): Probe {
  const object = { Bucket: bucket, Key: `${prefix}${probeName}${randomUUID()}` };
  const write = (condition: Pick<PutObjectCommandInput, 'IfNoneMatch'> = {}) =>
    client.send(new PutObjectCommand({ ...encrypted, ...object, ...condition, Body: content }));
  let found: Promise<void> | undefined;
  const findOut = async (): Promise<void> => {
    found = findFeatures(features, () => write(features.conditions ? { IfNoneMatch: '*' } : {}), log);
    await found.catch((error: unknown) => {
      found = undefined;
      throw error;
    });
  };
  const requests: ProbeRequests = {
    list: () => client.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, MaxKeys: 1 })),
    write: () => (found === undefined ? findOut() : write()),
    read: async () => {
      const { Body } = await client.send(new GetObjectCommand(object));
      compare(Body instanceof Readable ? await text(Body) : '');
    },
    readMissing: () => client.send(new GetObjectCommand(object)).catch(absent),
    ...(presigns && {
      open: async () => await open(await getSignedUrl(client, new GetObjectCommand(object), { expiresIn: 60 })),
    }),
    delete: () => client.send(new DeleteObjectCommand(object)),
  };
  /** The time of the last check that wrote, if nothing failed since. */
  let checkedAt = Number.NEGATIVE_INFINITY;
  return {
    async settle() {
      if (found !== undefined) return await found;
      await findOut();
      await requests.delete().catch(() => undefined);
    },
    doubt: () => {
      checkedAt = Number.NEGATIVE_INFINITY;
    },
    async problem({ writes = true } = {}) {
      const isDue = performance.now() - checkedAt >= writeEveryMs;
      const all = writes ? allSteps : (['list', 'readMissing', 'delete'] as const);
      const where = `the bucket ${bucket} of RUNYARD_BLOBS${writes ? '' : '_FROM'}`;
      const problem = await probeBucket(where, requests, isDue ? all : ['list']);
      if (problem) checkedAt = Number.NEGATIVE_INFINITY;
      else if (isDue) checkedAt = performance.now();
      return problem;
    },
  };
}

function compare(read: string): void {
  if (read !== content) throw new ProbeMismatch('the answer is not the object that was written');
}

async function open(url: string): Promise<void> {
  const answer = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(10_000) });
  if (!answer.ok) {
    await answer.body?.cancel();
    throw new ProbeMismatch(`the answer has the status ${answer.status}`);
  }
  compare(await answer.text());
}
