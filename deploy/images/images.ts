/** The images of the service and the worker. docs/decisions/images.md describes them. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { serviceNodeFlags } from '../../packages/cli/src/supervise/stack.ts';
import {
  type ImageArchive,
  imageArchive,
  imageLabels,
  type TarEntry,
} from '../../packages/worker/src/sidecar/archive.ts';
import { certificates, type DebianPackage, debianPackages, filesOf } from './debian.ts';
import { type NpmPackage, npmPackages, programFiles } from './program.ts';

export const imageKinds = ['service', 'worker'] as const;
export type ImageKind = (typeof imageKinds)[number];

/** User and group of both images. */
export const imageUser = 10001;
/** The programs write only to this folder and to /tmp. */
export const dataFolder = '/var/lib/runyard';

const node = '/usr/local/bin/node';
/** System programs for the service, which imports skills with git. Git needs a shell. */
const forService = ['base-files', 'ca-certificates', 'dash', 'git', 'libc6', 'libstdc++6'];
/** System programs for the worker and for bubblewrap sandboxes. The worker locks its folder with flock(1). */
const forSandboxes = 'bash bubblewrap coreutils curl diffutils findutils grep gzip mawk sed tar util-linux'.split(' ');

export interface Image {
  readonly kind: ImageKind;
  readonly debian: readonly DebianPackage[];
  readonly npm: readonly NpmPackage[];
  /** The files of each layer. System programs are in the first layer, and Runyard's programs, which change with each version, in the second. */
  readonly layers: readonly (readonly TarEntry[])[];
}

/** Returns the files of an image, sorted, so that equal checkouts and packages give equal images. */
export function imageOf(kind: ImageKind, root: string): Image {
  const debian = debianPackages(kind === 'service' ? forService : [...forService, ...forSandboxes]);
  const names = new Set(debian.map(({ name }) => name));
  const file = (name: string, text: string | Buffer, mode = 0o644): TarEntry => ({
    name,
    mode,
    content: { bytes: Buffer.from(text) },
  });
  const link = (name: string, to: string): TarEntry => ({ name, mode: 0o777, content: { link: to } });
  const folder = (name: string, mode: number, owner = 0): TarEntry => ({ name, mode, content: 'folder', owner });
  const system = [
    ...['bin', 'sbin', 'lib', 'lib64'].map((name) => link(name, `usr/${name}`)),
    ...['dev/', 'proc/', 'run/', 'sys/'].map((name) => folder(name, 0o755)),
    folder('tmp/', 0o1777),
    folder(`${dataFolder.slice(1)}/`, 0o700, imageUser),
    ...filesOf(debian),
    link('usr/bin/sh', 'dash'),
    ...(names.has('mawk') ? [link('usr/bin/awk', 'mawk')] : []),
    file(
      'etc/passwd',
      `root:x:0:0:root:/:/bin/sh\nrunyard:x:${imageUser}:${imageUser}:Runyard:${dataFolder}:/bin/sh\n`,
    ),
    file('etc/group', `root:x:0:\nrunyard:x:${imageUser}:\n`),
    file('etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n'),
    file('etc/ssl/certs/ca-certificates.crt', certificates()),
    file(node.slice(1), readFileSync(process.execPath), 0o755),
    file('usr/share/doc/node/LICENSE', readFileSync(path.resolve(process.execPath, '../../LICENSE'))),
  ];
  const program = [
    ...programFiles(root),
    file(readyFile, readiness),
    file('usr/local/bin/runyard', `#!/bin/sh\nexec ${node} /runyard/packages/cli/src/main.ts "$@"\n`, 0o755),
  ];
  return { kind, debian, npm: npmPackages(root), layers: [inOrder(system), inOrder(program)] };
}

/** Adds the parent folders of the entries and sorts all entries by name. If several entries have the same name, keeps the last of them. */
export function inOrder(entries: readonly TarEntry[]): TarEntry[] {
  const byName = new Map<string, TarEntry>();
  for (const { name } of entries)
    for (const { index } of name.matchAll(/\//g))
      byName.set(name.slice(0, index + 1), { name: name.slice(0, index + 1), mode: 0o755, content: 'folder' });
  for (const entry of entries) byName.set(entry.name, entry);
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * A script that succeeds if the service accepts requests. With `--end-hanging`, it kills a service that has not answered for 30 seconds, so
 * that the container engine restarts the container. A signal to -1 reaches all processes except the first one and the script.
 */
const readyFile = 'runyard/ready.mjs';
const readiness = `const ask = (path, seconds) =>
  fetch('http://127.0.0.1:' + (process.env.RUNYARD_PORT || 4180) + path, { signal: AbortSignal.timeout(seconds * 1000) }).catch((error) => error);
const ready = await ask('/readyz', 8);
if (process.argv[2] === '--end-hanging' && ready.name === 'TimeoutError' && (await ask('/healthz', 22)).name === 'TimeoutError') process.kill(-1, 'SIGKILL');
process.exitCode = ready.ok ? 0 : 1;
`;
const second = 1_000_000_000;

/** How engines start a container of the image, in the format that image-spec and container engines share. */
export interface ImageStart {
  readonly User: string;
  readonly WorkingDir: string;
  readonly Volumes: Readonly<Record<string, object>>;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly StopSignal: string;
  readonly ExposedPorts?: Readonly<Record<string, object>>;
  readonly Healthcheck?: Readonly<Record<string, unknown>>;
}

export function startOf(kind: ImageKind): ImageStart {
  const common = [
    'PATH=/usr/local/bin:/usr/bin:/bin',
    `HOME=${dataFolder}`,
    'LANG=C.UTF-8',
    `RUNYARD_DATA_DIR=${dataFolder}`,
  ];
  const main = `/runyard/packages/${kind}/src/main.ts`;
  const shared = { User: `${imageUser}:${imageUser}`, WorkingDir: dataFolder, Volumes: { [dataFolder]: {} } };
  if (kind === 'worker')
    return { ...shared, Env: [...common, 'RUNYARD_ADOPT_SECONDS=0'], Entrypoint: [node, main], StopSignal: 'SIGTERM' };
  return {
    ...shared,
    Env: [...common, 'RUNYARD_HOST=0.0.0.0'],
    Entrypoint: [node, ...serviceNodeFlags, main],
    StopSignal: 'SIGTERM',
    ExposedPorts: { '4180/tcp': {} },
    Healthcheck: {
      Test: ['CMD', node, `/${readyFile}`],
      Interval: 30 * second,
      Timeout: 10 * second,
      StartPeriod: 60 * second,
      Retries: 3,
    },
  };
}

export interface ArchiveRequest {
  readonly image: Image;
  readonly version: string;
  /** Name and tag. */
  readonly name: string;
  readonly source: string | undefined;
  readonly compress: boolean;
}

/** Creates the archive of an image for `docker load`. */
export const archiveOf = ({ image, version, name, source, compress }: ArchiveRequest): Promise<ImageArchive> =>
  imageArchive({
    layers: image.layers,
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    labels: imageLabels({
      title: `runyard-${image.kind}`,
      description: `The ${image.kind} of Runyard. Licences are in /usr/share/doc, /runyard/LICENSE and /runyard/node_modules.`,
      version,
      // The license of Runyard. The bill of materials has the licenses of the packages.
      licenses: 'Apache-2.0',
      source,
    }),
    name,
    compress,
    start: { ...startOf(image.kind) },
    createdBy: 'bin/images',
  });
