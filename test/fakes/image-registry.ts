import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';

/** An image in the registry, with one layer. */
export interface RegistryImage {
  /** Tar archive of the image's files. */
  readonly layer: Buffer;
  readonly architecture?: string;
  /** Program that the containers of the image start, with arguments. */
  readonly command?: readonly string[];
  /** The registry answers 401 for this image. */
  readonly needsCredentials?: true;
  /** The registry sends the layer only after this promise has resolved. */
  readonly release?: Promise<void>;
}

export interface FakeImageRegistry extends AsyncDisposable {
  /** Host and port, as the first part of image names. */
  readonly address: string;
  /** The digests of the layers that clients requested, one entry for each request. */
  readonly layerRequests: string[];
}

const manifestType = 'application/vnd.docker.distribution.manifest.v2+json';
const listType = 'application/vnd.docker.distribution.manifest.list.v2+json';
const digestOf = (content: Buffer): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;

/**
 * Starts a fake image registry with the read operations of the Distribution API (github.com/opencontainers/distribution-spec). The
 * keys of `images` are `name:tag`.
 */
export async function startFakeImageRegistry(
  images: Readonly<Record<string, RegistryImage>>,
  /** `user:password` that every request must send. Absent: no request needs credentials. */
  credentials?: string,
): Promise<FakeImageRegistry> {
  const blobs = new Map<string, { readonly content: Buffer; readonly release?: Promise<void> | undefined }>();
  const manifests = new Map<string, { readonly content: Buffer; readonly type: string }>();
  const closed = new Set<string>();
  const keep = (content: Buffer, release?: Promise<void>): string => {
    const digest = digestOf(content);
    if (!blobs.has(digest)) blobs.set(digest, { content, release });
    return digest;
  };
  for (const [name, image] of Object.entries(images)) {
    const { layer, architecture = 'amd64', command, release } = image;
    const packed = gzipSync(layer);
    const config = Buffer.from(
      JSON.stringify({
        architecture,
        os: 'linux',
        config: command === undefined ? {} : { Cmd: command },
        rootfs: { type: 'layers', diff_ids: [digestOf(layer)] },
      }),
    );
    const content = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: manifestType,
        config: {
          mediaType: 'application/vnd.docker.container.image.v1+json',
          size: config.length,
          digest: keep(config),
        },
        layers: [
          {
            mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
            size: packed.length,
            digest: keep(packed, release),
          },
        ],
      }),
    );
    const digest = digestOf(content);
    manifests.set(`${name.split(':')[0]}:${digest}`, { content, type: manifestType });
    const platform = { architecture, os: 'linux' };
    const entry = { mediaType: manifestType, size: content.length, digest, platform };
    const list = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: listType, manifests: [entry] }));
    for (const reference of [name, `${name.split(':')[0]}:${digestOf(list)}`])
      manifests.set(reference, { content: list, type: listType });
    if (image.needsCredentials) closed.add(name.split(':')[0] ?? '');
  }

  const layerRequests: string[] = [];
  const refuse = (response: ServerResponse, status: number, code: string): void => {
    const headers = { 'content-type': 'application/json', 'www-authenticate': 'Basic realm="registry"' };
    response.writeHead(status, headers).end(JSON.stringify({ errors: [{ code, message: code.toLowerCase() }] }));
  };
  const server = createServer(async (request, response) => {
    // Ignore the query. If this registry is the mirror of another one, the query contains the name of the other registry.
    const [url = ''] = (request.url ?? '').split('?');
    const wanted = credentials && `Basic ${Buffer.from(credentials).toString('base64')}`;
    if (wanted !== undefined && request.headers.authorization !== wanted) return refuse(response, 401, 'UNAUTHORIZED');
    if (url === '/v2/') return void response.writeHead(200).end('{}');
    const [, name = '', kind = '', reference = ''] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(url) ?? [];
    if (closed.has(name)) return refuse(response, 401, 'UNAUTHORIZED');
    if (kind === 'blobs') {
      const blob = blobs.get(reference);
      if (blob === undefined) return refuse(response, 404, 'BLOB_UNKNOWN');
      response.writeHead(200, { 'content-length': blob.content.length });
      if (blob.release !== undefined) {
        layerRequests.push(reference);
        response.write(blob.content.subarray(0, blob.content.length / 2));
        await blob.release;
        return void response.end(blob.content.subarray(blob.content.length / 2));
      }
      return void response.end(blob.content);
    }
    const manifest = manifests.get(`${name}:${reference}`);
    if (manifest === undefined) return refuse(response, 404, 'MANIFEST_UNKNOWN');
    const { content, type } = manifest;
    const headers = {
      'content-type': type,
      'content-length': content.length,
      'docker-content-digest': digestOf(content),
    };
    response.writeHead(200, headers).end(request.method === 'HEAD' ? undefined : content);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    layerRequests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
