/**
 * A bucket in memory, for what a real server of the S3 protocol does not do in tests: it lacks features, refuses rights, or expects a
 * region. It checks no signatures. The refusals have the form of these servers:
 * - checksums: Backblaze B2, `400 InvalidArgument` for `x-amz-checksum-…` and `x-amz-sdk-checksum-algorithm`
 *   (github.com/stonith404/pingvin-share/issues/798, github.com/vatesfr/xen-orchestra/issues/8358).
 * - conditions: `501 NotImplemented` with the name of the header (github.com/versity/versitygw/issues/2108).
 * - uploads: s3proxy, `501 NotImplemented` for the list of unfinished uploads (github.com/gaul/s3proxy/issues/152).
 * - region: Garage, `400 AuthorizationHeaderMalformed`, without a text for HEAD.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** The kinds of requests. `open`: a read with a presigned URL. */
type Kind = 'list' | 'write' | 'read' | 'open' | 'delete' | 'uploads' | 'abort';

export interface FakeBucket {
  readonly url: string;
  /** Variables of the AWS SDK for this server. */
  readonly env: Readonly<Record<string, string>>;
  /** Features that the server lacks. */
  readonly lacks: Set<'checksums' | 'conditions' | 'uploads'>;
  /** Kinds of requests that the server refuses with 403. */
  readonly denied: Set<Kind>;
  /** The region that signatures must have. Undefined: every region. */
  region: string | undefined;
  readonly objects: Map<string, { readonly bytes: Buffer; readonly at: Date }>;
  /** Names of objects whose upload began two days ago and is unfinished. */
  readonly unfinished: Set<string>;
  /** All requests until now: the kind, and the path of the object. */
  readonly requests: { readonly kind: Kind; readonly path: string }[];
  close(): Promise<void>;
}

export async function startFakeBucket(): Promise<FakeBucket> {
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const bucket: FakeBucket = {
    url,
    env: { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b', AWS_ENDPOINT_URL_S3: url },
    lacks: new Set(),
    denied: new Set(),
    region: undefined,
    objects: new Map(),
    unfinished: new Set(),
    requests: [],
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const { pathname, searchParams } = new URL(request.url ?? '', bucket.url);
    const kind = kindOf(request, pathname, searchParams);
    bucket.requests.push({ kind, path: pathname });
    const refuse = (status: number, code: string, message: string) =>
      response
        .writeHead(status, { 'content-type': 'application/xml' })
        .end(request.method === 'HEAD' ? '' : `<Error><Code>${code}</Code><Message>${message}</Message></Error>`);
    const scope = /Credential=[^/]+\/([^,]+)/.exec(request.headers.authorization ?? '')?.[1];
    if (bucket.region !== undefined && scope !== undefined && !scope.includes(`/${bucket.region}/`))
      return void refuse(
        400,
        'AuthorizationHeaderMalformed',
        `Authorization header malformed, unexpected scope: ${scope}`,
      );
    if (bucket.denied.has(kind)) return void refuse(403, 'AccessDenied', 'Access Denied.');
    if (bucket.lacks.has('checksums'))
      for (const name of Object.keys(request.headers))
        if (/^x-amz-(sdk-)?checksum-/.test(name))
          return void refuse(400, 'InvalidArgument', `Unsupported header '${name}' received for this API call.`);
    const isConditional = request.headers['if-none-match'] === '*';
    if (isConditional && bucket.lacks.has('conditions'))
      return void refuse(501, 'NotImplemented', 'A header you provided implies functionality that is not implemented');
    const found = bucket.objects.get(pathname);
    switch (kind) {
      case 'uploads':
        if (bucket.lacks.has('uploads')) return void refuse(501, 'NotImplemented', 'not implemented');
        return void response.end(uploadsOf(bucket));
      case 'abort':
        bucket.unfinished.delete(searchParams.get('uploadId') ?? '');
        return void response.writeHead(204).end();
      case 'list':
        return void response.end(listOf(bucket, pathname, searchParams.get('prefix') ?? ''));
      case 'write':
        if (isConditional && found) return void refuse(412, 'PreconditionFailed', 'the object exists');
        bucket.objects.set(pathname, { bytes: body, at: new Date() });
        return void response.writeHead(200, { etag: '"1"' }).end();
      case 'read':
      case 'open':
        if (!found) return void refuse(404, 'NoSuchKey', 'no such key');
        response.writeHead(200, { 'content-length': found.bytes.length });
        return void response.end(request.method === 'HEAD' ? undefined : found.bytes);
      case 'delete':
        bucket.objects.delete(pathname);
        return void response.writeHead(204).end();
    }
  }
  return bucket;
}

function kindOf({ method }: IncomingMessage, path: string, query: URLSearchParams): Kind {
  if (method === 'PUT') return 'write';
  if (method === 'DELETE') return query.has('uploadId') ? 'abort' : 'delete';
  if (query.has('uploads')) return 'uploads';
  if (path.split('/').filter(Boolean).length === 1) return 'list';
  return query.has('X-Amz-Signature') ? 'open' : 'read';
}

function uploadsOf({ unfinished }: FakeBucket): string {
  const initiated = new Date(Date.now() - 48 * 3600 * 1000).toISOString();
  const uploads = [...unfinished].map(
    (name) => `<Upload><Key>${name}</Key><UploadId>${name}</UploadId><Initiated>${initiated}</Initiated></Upload>`,
  );
  return `<ListMultipartUploadsResult>${uploads.join('')}</ListMultipartUploadsResult>`;
}

function listOf({ objects }: FakeBucket, path: string, prefix: string): string {
  const root = `${path.replace(/\/$/, '')}/`;
  const contents = [...objects]
    .filter(([name]) => name.startsWith(root + prefix))
    .map(
      ([name, { bytes, at }]) =>
        `<Contents><Key>${name.slice(root.length)}</Key><Size>${bytes.length}</Size><LastModified>${at.toISOString()}</LastModified></Contents>`,
    );
  return `<ListBucketResult><IsTruncated>false</IsTruncated>${contents.join('')}</ListBucketResult>`;
}
