/** A real server of the S3 protocol (SeaweedFS, from PyPI) on loopback, with its files in a temporary folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
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

/** Installs and starts a server. Returns `missing` if it cannot be installed on this machine. */
export async function startS3Server(): Promise<S3ServerStart> {
  const packages = await installPythonPackages(path.join(import.meta.dirname, '../s3/requirements.txt'), 7);
  if (packages.kind === 'missing') return packages;
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-s3-'));
  const [s3 = 0, ...ports] = await Promise.all(Array.from({ length: 5 }, freePort));
  const endpoint = `http://127.0.0.1:${s3}`;
  const env = { AWS_ACCESS_KEY_ID: 'test-key', AWS_SECRET_ACCESS_KEY: 'test-secret', AWS_ENDPOINT_URL_S3: endpoint };
  const [filer, master, volume, admin] = ports;
  const words = [
    ...['mini', `-dir=${folder}`, '-ip=127.0.0.1', '-ip.bind=127.0.0.1', `-bucket=${bucket}`, `-s3.port=${s3}`],
    ...[`-filer.port=${filer}`, `-master.port=${master}`, `-volume.port=${volume}`, `-admin.port=${admin}`],
    ...['-admin.ui=false', '-webdav=false', '-s3.port.iceberg=0', '-s3.port.lance=0'],
  ];
  let child: ChildProcess | undefined;
  const kill = async () => {
    if (!child) return;
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
    child = undefined;
  };
  const start = async () => {
    const program = path.join(packages.folder, 'bin/weed');
    child = spawn(program, words, { cwd: folder, env: { ...env, HOME: folder, TMPDIR: folder }, stdio: 'ignore' });
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
    await packages.remove();
  };
  return { kind: 'ready', server: { endpoint, bucket, env, kill, start, stop } };
}
