/**
 * An image as one file, which is an OCI image layout (github.com/opencontainers/image-spec) and has the list of older engines too, so that `docker
 * load`, `podman load`, `skopeo` and `crane` read it. No engine is needed to make it.
 */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';

export interface TarEntry {
  /** Relative path; folders end with `/`. */
  readonly name: string;
  /** Permission bits. */
  readonly mode: number;
  readonly content: { readonly bytes: Uint8Array } | { readonly link: string } | 'folder';
}

/** Returns the tar archive of entries, in their order. Owner is root and the time is 0, so that equal entries give equal bytes. */
export function tarOf(entries: Iterable<TarEntry>): Readable {
  const archive = pack();
  for (const { name, mode, content } of entries) {
    const header = { name, mode, mtime: new Date(0), uid: 0, gid: 0, uname: 'root', gname: 'root' };
    if (content === 'folder') archive.entry({ ...header, type: 'directory' });
    else if ('link' in content) archive.entry({ ...header, type: 'symlink', linkname: content.link });
    else archive.entry(header, Buffer.from(content.bytes));
  }
  archive.finalize();
  return Readable.from(archive);
}

export interface ImageRequest {
  readonly entries: readonly TarEntry[];
  /** Such as `amd64`. */
  readonly architecture: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Name and tag. */
  readonly name: string;
  /** False: the layer is not compressed, for tests. */
  readonly compress: boolean;
}

export interface ImageArchive {
  /** The archive of the image's files. */
  readonly layer: Buffer;
  /** The configuration of the image, as JSON. */
  readonly config: Buffer;
  /** Digest of the image's manifest, by which registries name it. */
  readonly digest: string;
  /** Bytes of the archive. */
  pieces(): Readable;
}

const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));
const blobFile = (digest: string): string => `blobs/${digest.replace(':', '/')}`;
/** A fixed time for each build, because it is part of the digest. */
const created = '1970-01-01T00:00:00Z';

/** Makes the archive of an image with one layer. Equal requests give equal bytes. */
export async function imageArchive({
  entries,
  architecture,
  labels,
  name,
  compress,
}: ImageRequest): Promise<ImageArchive> {
  const files = await buffer(tarOf(entries));
  const layer = compress ? gzipSync(files, { level: 9 }) : files;
  const config = json({
    created,
    architecture,
    os: 'linux',
    config: { Env: ['PATH=/bin'], Cmd: ['/bin/sh'], Labels: labels },
    rootfs: { type: 'layers', diff_ids: [digestOf(files)] },
    history: [{ created, created_by: 'bin/build-sidecar-image' }],
  });
  const part = (mediaType: string, bytes: Uint8Array) => ({ mediaType, digest: digestOf(bytes), size: bytes.length });
  const ociType = (what: string): string => `application/vnd.oci.image.${what}`;
  const manifestType = ociType('manifest.v1+json');
  const manifest = json({
    schemaVersion: 2,
    mediaType: manifestType,
    config: part(ociType('config.v1+json'), config),
    layers: [part(ociType(`layer.v1.tar${compress ? '+gzip' : ''}`), layer)],
    annotations: labels,
  });
  const index = json({
    schemaVersion: 2,
    mediaType: ociType('index.v1+json'),
    manifests: [
      {
        ...part(manifestType, manifest),
        platform: { architecture, os: 'linux' },
        annotations: { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': name },
      },
    ],
  });
  const ofEngines = json([
    { Config: blobFile(digestOf(config)), RepoTags: [name], Layers: [blobFile(digestOf(layer))] },
  ]);
  const file = (path: string, bytes: Uint8Array): TarEntry => ({ name: path, mode: 0o644, content: { bytes } });
  return {
    layer,
    config,
    digest: digestOf(manifest),
    pieces: () =>
      tarOf([
        file('oci-layout', json({ imageLayoutVersion: '1.0.0' })),
        file('index.json', index),
        file('manifest.json', ofEngines),
        ...[config, manifest, layer].map((bytes) => file(blobFile(digestOf(bytes)), bytes)),
      ]),
  };
}

/** Returns the labels of the sidecar image (github.com/opencontainers/image-spec, "Pre-Defined Annotation Keys"). */
export function sidecarLabels(version: string, source: string | undefined): Record<string, string> {
  const key = (name: string): string => `org.opencontainers.image.${name}`;
  return {
    [key('title')]: 'runyard-agent',
    [key('description')]:
      'Agent of Runyard for oz-agent-worker: content of /agent. The licences of its parts are in /licences.',
    [key('version')]: version,
    // Of the agent, Node, BusyBox, and the C and C++ libraries.
    [key('licenses')]:
      'Apache-2.0 AND MIT AND GPL-2.0-only AND LGPL-2.1-or-later AND GPL-3.0-or-later WITH GCC-exception-3.1',
    ...(source === undefined ? {} : { [key('source')]: source }),
  };
}

/**
 * Returns the sentences on how to send an archive to a registry. A name says its registry by a first part with a dot or a port, or as
 * `localhost` (github.com/distribution/reference); other names get the placeholder REGISTRY.
 */
export function pushAdvice(name: string, archive: string): string {
  const hasRegistry = /^(localhost|[^/]*[.:][^/]*)\//.test(name);
  const target = hasRegistry ? name : `REGISTRY/${name}`;
  const tag = hasRegistry ? '' : `docker tag ${name} ${target}; `;
  return (
    `runyard: send it to your registry: skopeo copy oci-archive:${archive} docker://${target}\n` +
    `runyard: or: docker load --input ${archive}; ${tag}docker push ${target}\n`
  );
}
