/**
 * A real server of the S3 protocol on loopback, with its files in a temporary folder: SeaweedFS from PyPI, or MinIO, if TEST_MINIO has the
 * path of its program (`go install github.com/minio/minio@latest`).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import { installPythonPackages } from './python-packages.ts';

export interface S3Server {
  readonly endpoint: string;
  /** A bucket that exists. */
  readonly bucket: string;
  /** Variables of the AWS SDK for this server. */
  readonly env: Readonly<Record<string, string>>;
  /** Ends the server by SIGKILL. Its files stay. */
  kill(): Promise<void>;
  /** Starts the server again after `kill`, at the same address with the same files. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export type S3ServerStart =
  | { readonly kind: 'ready'; readonly server: S3Server }
  | { readonly kind: 'missing'; readonly reason: string };

const bucket = 'runyard';
const startLimitMs = 60_000;

type Packages = Extract<Awaited<ReturnType<typeof installPythonPackages>>, { kind: 'ready' }>;

/** Returns the command that starts SeaweedFS with the bucket. */
async function seaweed({ folder: programs }: Packages, folder: string, s3: number): Promise<[string, ...string[]]> {
  const [filer, master, volume, admin] = await Promise.all(Array.from({ length: 4 }, freePort));
  return [
    path.join(programs, 'bin/weed'),
    ...['mini', `-dir=${folder}`, '-ip=127.0.0.1', '-ip.bind=127.0.0.1', `-bucket=${bucket}`, `-s3.port=${s3}`],
    ...[`-filer.port=${filer}`, `-master.port=${master}`, `-volume.port=${volume}`, `-admin.port=${admin}`],
    ...['-admin.ui=false', '-webdav=false', '-s3.port.iceberg=0', '-s3.port.lance=0'],
  ];
}

/** Installs and starts a server. Returns `missing` if it cannot be installed on this machine. */
export async function startS3Server(minio = process.env.TEST_MINIO): Promise<S3ServerStart> {
  const packages =
    minio === undefined
      ? await installPythonPackages(path.join(import.meta.dirname, '../s3/requirements.txt'), 7)
      : undefined;
  if (packages?.kind === 'missing') return packages;
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-s3-'));
  const s3 = await freePort();
  const endpoint = `http://127.0.0.1:${s3}`;
  const env = { AWS_ACCESS_KEY_ID: 'test-key', AWS_SECRET_ACCESS_KEY: 'test-secret', AWS_ENDPOINT_URL_S3: endpoint };
  const ofMinio = { MINIO_ROOT_USER: env.AWS_ACCESS_KEY_ID, MINIO_ROOT_PASSWORD: env.AWS_SECRET_ACCESS_KEY };
  // For MinIO on one disk, a bucket is a folder.
  if (minio !== undefined) await mkdir(path.join(folder, bucket));
  const [program, ...words] =
    packages === undefined
      ? [minio ?? '', 'server', folder, '--address', `127.0.0.1:${s3}`]
      : await seaweed(packages, folder, s3);
  let child: ChildProcess | undefined;
  const kill = async () => {
    if (!child) return;
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
    child = undefined;
  };
  const start = async () => {
    const own = { ...env, ...ofMinio, HOME: folder, TMPDIR: folder };
    child = spawn(program, words, { cwd: folder, env: own, stdio: 'ignore' });
    const deadline = performance.now() + startLimitMs;
    // Wait until the server refuses a request without a signature. It does so only when the bucket exists, which is the last step of
    // its start.
    while ((await fetch(`${endpoint}/${bucket}`).catch(() => undefined))?.status !== 403) {
      if (performance.now() > deadline) throw new Error('the server of S3 did not start');
      await sleep(100);
    }
  };
  await start();
  const stop = async () => {
    await kill();
    await rm(folder, { recursive: true, force: true });
    await packages?.remove();
  };
  return { kind: 'ready', server: { endpoint, bucket, env, kill, start, stop } };
}
