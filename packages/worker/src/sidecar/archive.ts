/**
 * Writes an image into one file, without a container engine. The file is an OCI image layout (github.com/opencontainers/image-spec).
 * It also has the file list of older engines, so that `docker load`, `podman load`, `skopeo` and `crane` can read it.
 */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';

export interface TarEntry {
  /** Relative path. The path of a folder ends with `/`. */
  readonly name: string;
  /** Permission bits. */
  readonly mode: number;
  readonly content: { readonly bytes: Uint8Array } | { readonly link: string } | 'folder';
  /** Id of the user and of the group that own the file. Default: root. */
  readonly owner?: number;
}

/** Returns a tar archive of the entries, in the given order. All files have the time 0, so that equal entries give equal archives. */
export function tarOf(entries: Iterable<TarEntry>): Readable {
  const archive = pack();
  for (const { name, mode, content, owner = 0 } of entries) {
    const user = owner === 0 ? { uname: 'root', gname: 'root' } : {};
    const header = { name, mode, mtime: new Date(0), uid: owner, gid: owner, ...user };
    if (content === 'folder') archive.entry({ ...header, type: 'directory' });
    else if ('link' in content) archive.entry({ ...header, type: 'symlink', linkname: content.link });
    else archive.entry(header, Buffer.from(content.bytes));
  }
  archive.finalize();
  return Readable.from(archive);
}

export interface ImageRequest {
  /** The files of each layer, from the lowest layer to the highest. */
  readonly layers: readonly (readonly TarEntry[])[];
  /** Architecture of the programs in the image, such as `amd64`. */
  readonly architecture: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Name and tag of the image. */
  readonly name: string;
  /** If it is false, the layers are not compressed. Tests use this. */
  readonly compress: boolean;
  /**
   * How containers of the image are started: the members of "config" without the labels (github.com/opencontainers/image-spec,
   * config.md). Default: a shell.
   */
  readonly start?: Readonly<Record<string, unknown>>;
  /** Command that makes the image. The history of the image shows this text. */
  readonly createdBy: string;
}

export interface ImageArchive {
  /** The archives of the image's files. */
  readonly layers: readonly Buffer[];
  /** The configuration of the image, as JSON. */
  readonly config: Buffer;
  /** Digest of the image's manifest, with which registries identify the image. */
  readonly digest: string;
  /** Returns the bytes of the archive as a stream. */
  pieces(): Readable;
}

const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));
const blobFile = (digest: string): string => `blobs/${digest.replace(':', '/')}`;
/** Each build uses this fixed time, because the digest of the image depends on the time. */
const created = '1970-01-01T00:00:00Z';

/** Makes the archive of an image. Equal requests give equal bytes. */
export async function imageArchive(request: ImageRequest): Promise<ImageArchive> {
  const { architecture, labels, name, compress, createdBy } = request;
  const { start = { Env: ['PATH=/bin'], Cmd: ['/bin/sh'] } } = request;
  const contents = await Promise.all(request.layers.map((entries) => buffer(tarOf(entries))));
  const layers = contents.map((content) => (compress ? gzipSync(content, { level: 9 }) : content));
  const config = json({
    created,
    architecture,
    os: 'linux',
    config: { ...start, Labels: labels },
    rootfs: { type: 'layers', diff_ids: contents.map(digestOf) },
    history: contents.map(() => ({ created, created_by: createdBy })),
  });
  const part = (mediaType: string, bytes: Uint8Array) => ({ mediaType, digest: digestOf(bytes), size: bytes.length });
  const ociType = (what: string): string => `application/vnd.oci.image.${what}`;
  const manifestType = ociType('manifest.v1+json');
  const manifest = json({
    schemaVersion: 2,
    mediaType: manifestType,
    config: part(ociType('config.v1+json'), config),
    layers: layers.map((layer) => part(ociType(`layer.v1.tar${compress ? '+gzip' : ''}`), layer)),
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
    { Config: blobFile(digestOf(config)), RepoTags: [name], Layers: layers.map((layer) => blobFile(digestOf(layer))) },
  ]);
  const file = (path: string, bytes: Uint8Array): TarEntry => ({ name: path, mode: 0o644, content: { bytes } });
  return {
    layers,
    config,
    digest: digestOf(manifest),
    pieces: () =>
      tarOf([
        file('oci-layout', json({ imageLayoutVersion: '1.0.0' })),
        file('index.json', index),
        file('manifest.json', ofEngines),
        ...[config, manifest, ...layers].map((bytes) => file(blobFile(digestOf(bytes)), bytes)),
      ]),
  };
}

export interface ImageFacts {
  readonly title: string;
  readonly description: string;
  readonly version: string;
  readonly licenses: string;
  /** URL of the image's source code. Absent if it is unknown. */
  readonly source?: string | undefined;
}

/** Returns the labels of an image (github.com/opencontainers/image-spec, "Pre-Defined Annotation Keys"). */
export const imageLabels = (facts: ImageFacts): Record<string, string> =>
  Object.fromEntries(
    Object.entries(facts).flatMap(([name, value]) =>
      value === undefined ? [] : [[`org.opencontainers.image.${name}`, value]],
    ),
  );

/** Returns the labels of the sidecar image. */
export const sidecarLabels = (version: string, source: string | undefined): Record<string, string> =>
  imageLabels({
    title: 'runyard-agent',
    description: 'Agent of Runyard for oz-agent-worker: content of /agent. The licences of its parts are in /licences.',
    version,
    // Licences of the agent, of Node, of BusyBox, and of the C and C++ libraries.
    licenses: 'Apache-2.0 AND MIT AND GPL-2.0-only AND LGPL-2.1-or-later AND GPL-3.0-or-later WITH GCC-exception-3.1',
    source,
  });

/**
 * Returns the commands with which the user sends an archive to a registry. The first part of an image name is the registry if this
 * part has a dot or a port, or is `localhost` (github.com/distribution/reference). Names without a registry get the placeholder
 * REGISTRY.
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
