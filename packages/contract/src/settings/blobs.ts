/** Settings of the store of large bodies: transcripts, artifacts, attachments, workspaces. */
import { matching, oneLine, oneOf, type ReadText, type Setting } from './setting.ts';

/**
 * The place where blobs are stored: a folder with an absolute path, or a bucket with a prefix for object names. The prefix is empty or ends
 * with `/`.
 */
export type BlobsAddress =
  | { readonly kind: 'folder'; readonly path: string }
  | { readonly kind: 's3'; readonly bucket: string; readonly prefix: string };

/** A bucket and a prefix that consist only of the characters of blob keys, so that requests need no escaping. */
const s3Url = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:\/[A-Za-z0-9][A-Za-z0-9._-]{0,99}){0,5})\/?$/;

const blobsAddress: ReadText<BlobsAddress> = oneLine<BlobsAddress>((text) => {
  if (text.startsWith('/')) return { value: { kind: 'folder', path: text } };
  const [, bucket, names = ''] = s3Url.exec(text) ?? [];
  return bucket === undefined
    ? { problem: 'must be s3://bucket, s3://bucket/prefix or the absolute path of a folder' }
    : { value: { kind: 's3', bucket, prefix: names === '' ? '' : `${names.slice(1)}/` } };
});

/** Seconds within which a client must start to download from a presigned URL. */
export const presignedSeconds = 300;

export const blobSettings = {
  RUNYARD_BLOBS: {
    read: blobsAddress,
    description:
      'Where transcripts, artifacts, attachments and workspaces are stored: `s3://bucket/prefix`, with credentials, region and endpoint that the AWS SDK finds in its variables (`AWS_ACCESS_KEY_ID`, `AWS_REGION`, `AWS_ENDPOINT_URL_S3`, `AWS_PROFILE`, …), in its files or from the role of the machine, or the absolute path of a folder that all service processes share. Absent: `blobs` in the data folder.',
    usedBy: ['service', 'cli'],
  },
  RUNYARD_BLOBS_FROM: {
    read: blobsAddress,
    description:
      'The earlier place of the blobs, while `bin/runyard blobs move` copies them to RUNYARD_BLOBS. The service reads blobs that were not copied yet from this place.',
    usedBy: ['service', 'cli'],
  },
  RUNYARD_BLOBS_ENCRYPTION: {
    read: matching(/^(AES256|aws:kms(:[\x21-\x7e]+)?)$/, 'must be AES256, aws:kms or aws:kms:KEY'),
    description:
      'Encryption that the bucket is asked for: `AES256`, `aws:kms`, or `aws:kms:` and the id or ARN of a key. Absent: the default encryption of the bucket.',
    usedBy: ['service', 'cli'],
  },
  RUNYARD_BLOBS_DOWNLOADS: {
    read: oneOf('bucket', 'service'),
    default: 'bucket',
    description: `Where people download artifacts that are in a bucket: \`bucket\`: by presigned URLs of ${presignedSeconds / 60} minutes, so that the bytes do not pass the service; \`service\`: from the service, for a bucket that only it can reach. Sandboxes and MCP tools always read from the service.`,
    usedBy: ['service', 'cli'],
  },
} as const satisfies Record<string, Setting<unknown>>;
