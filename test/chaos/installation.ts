/** Starts an installation of three services, four workers, PostgreSQL and an S3 server, each on a node of its own. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, chownSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { serviceNodeFlags } from '../../packages/cli/src/supervise/stack.ts';
import { chooseAccount } from '../../packages/service/src/platform/store/embedded/account.ts';
import { compiledCode } from '../support/compiled-code.ts';
import { programFile } from '../support/programs.ts';
import { eventually } from '../support/system.ts';
import { systemPostgres } from '../support/system-postgres.ts';
import { type ChaosNode, makeBridge, makeNode, network } from './network.ts';
import { type KeptProgram, keepProgram } from './programs.ts';

export const serviceNames = ['service1', 'service2', 'service3'] as const;
export const workerNames = ['worker1', 'worker2', 'worker3', 'worker4'] as const;

export interface Installation {
  readonly key: string;
  readonly databaseUrl: string;
  /** URL of the bucket for the blobs, and the environment variables with which the AWS SDK opens this bucket. */
  readonly blobs: { readonly url: string; readonly env: Readonly<Record<string, string>> };
  /** Origins of the services. */
  readonly origins: readonly string[];
  readonly programs: readonly KeptProgram[];
  program(name: string): KeptProgram;
  /** Resolves when all services are ready. */
  untilReady(): Promise<void>;
}

const key = 'ryk_chaos-in-network-namespaces-0123456789';
const bucket = 'runyard';
const servicePort = 4180;
const s3Port = 8333;
/** Short limits, so that the services notice a lost worker within seconds. */
const timing = {
  RUNYARD_LEASE_SECONDS: '15',
  RUNYARD_RECONNECT_GRACE_SECONDS: '6',
  RUNYARD_CLAIM_TIMEOUT_SECONDS: '6',
};

/**
 * Makes all nodes with their folders below `root`, and starts the programs. `weed` is the path of the S3 server's program. Resolves
 * when the services are ready.
 */
export async function startInstallation(root: string, weed: string): Promise<Installation> {
  makeBridge();
  const logs = path.join(root, 'logs');
  mkdirSync(logs);
  const logFile = (name: string) => path.join(logs, `${name}.log`);
  const database = makeNode(root, 'database', 2, 2048);
  const bucketNode = makeNode(root, 's3', 3, 1024);
  const programs = [await startDatabase(database, logFile('database')), startS3(bucketNode, weed, logFile('s3'))];
  const endpoint = `http://${bucketNode.address}:${s3Port}`;
  const blobs = {
    url: `s3://${bucket}/chaos`,
    env: { AWS_ACCESS_KEY_ID: 'test-key', AWS_SECRET_ACCESS_KEY: 'test-secret', AWS_ENDPOINT_URL_S3: endpoint },
  };
  await eventually('the bucket', async () => {
    const answer = await fetch(`${endpoint}/${bucket}`).catch(() => undefined);
    return answer?.status === 403;
  });
  const databaseUrl = `postgresql://operator@${database.address}:5432/postgres`;
  const common = { RUNYARD_LOG: 'info', ...compiledCode() };
  const script = { service: await programFile('service'), worker: await programFile('worker') };
  const secretsKey = randomBytes(32).toString('base64');
  const origins: string[] = [];
  for (const [index, name] of serviceNames.entries()) {
    const node = makeNode(root, name, 11 + index, 256);
    const env = {
      ...common,
      ...timing,
      ...blobs.env,
      RUNYARD_DATA_DIR: node.folder,
      RUNYARD_DATABASE_URL: databaseUrl,
      RUNYARD_BLOBS: blobs.url,
      RUNYARD_HOST: '0.0.0.0',
      RUNYARD_PORT: String(servicePort),
      RUNYARD_BASE_URL: `http://${node.address}:${servicePort}`,
      RUNYARD_BOOTSTRAP_KEY: key,
      RUNYARD_SECRETS_KEY: secretsKey,
      RUNYARD_ALLOW_PRIVATE_NETWORKS: network,
    };
    const command = [process.execPath, ...serviceNodeFlags, script.service, '--stop-with-parent'];
    programs.push(keepProgram({ name, node, command, env, logFile: logFile(name) }));
    origins.push(env.RUNYARD_BASE_URL);
    // Wait for each service before the next one starts, because the first service migrates the database.
    await untilReady([env.RUNYARD_BASE_URL]);
  }
  for (const [index, name] of workerNames.entries()) {
    const node = makeNode(root, name, 21 + index, 1024);
    const env = {
      ...common,
      RUNYARD_DATA_DIR: node.folder,
      RUNYARD_BASE_URL: origins[index % origins.length] ?? '',
      RUNYARD_API_KEY: key,
      RUNYARD_WORKER_NAME: `runyard-${name}`,
      RUNYARD_WORKER_SLOTS: '3',
      RUNYARD_ADOPT_SECONDS: '60',
    };
    const command = [process.execPath, script.worker, '--stop-with-parent'];
    programs.push(keepProgram({ name, node, command, env, logFile: logFile(name) }));
  }
  return {
    key,
    databaseUrl,
    blobs,
    origins,
    programs,
    program: (name) => {
      const found = programs.find((each) => each.name === name);
      if (!found) throw new Error(`there is no program ${name}`);
      return found;
    },
    untilReady: () => untilReady(origins),
  };
}

async function untilReady(origins: readonly string[]): Promise<void> {
  for (const origin of origins)
    await eventually(`a ready service at ${origin}`, async () => {
      const answer = await fetch(`${origin}/readyz`, { signal: AbortSignal.timeout(2000) }).catch(() => undefined);
      return answer?.status === 200;
    });
}

async function startDatabase(node: ChaosNode, logFile: string): Promise<KeptProgram> {
  if (systemPostgres === undefined) throw new Error('PostgreSQL is missing (Debian: apt-get install postgresql)');
  const data = path.join(node.folder, 'data');
  const account = await chooseAccount(data);
  mkdirSync(data, { mode: 0o700 });
  chownSync(data, account.uid, account.gid);
  const made = spawnSync(
    path.join(systemPostgres, 'initdb'),
    ['-D', data, '-U', 'operator', '-E', 'UTF8', '--locale=C', '--auth=trust', '--no-sync'],
    { uid: account.uid, gid: account.gid, cwd: data, encoding: 'utf8' },
  );
  if (made.status !== 0) throw new Error(made.stderr);
  appendFileSync(path.join(data, 'pg_hba.conf'), `host all all ${network} trust\n`);
  // fsync=off is safe here: the tests kill only processes, and PostgreSQL needs fsync only if the whole machine fails. With the TCP
  // settings, PostgreSQL closes the connections of nodes that it can no longer reach.
  const settings = ['listen_addresses=*', 'unix_socket_directories=', 'fsync=off', 'tcp_keepalives_idle=10'].concat(
    'tcp_keepalives_interval=5',
    'tcp_keepalives_count=3',
    'tcp_user_timeout=20s',
    'max_wal_size=256MB',
  );
  const command = [path.join(systemPostgres, 'postgres'), '-D', data, ...settings.flatMap((each) => ['-c', each])];
  return keepProgram({ name: 'database', node, command, account, logFile });
}

function startS3(node: ChaosNode, weed: string, logFile: string): KeptProgram {
  const command = [
    ...[weed, 'mini', `-dir=${node.folder}`, `-ip=${node.address}`, '-ip.bind=0.0.0.0', `-bucket=${bucket}`],
    ...[`-s3.port=${s3Port}`, '-admin.ui=false', '-webdav=false', '-s3.port.iceberg=0', '-s3.port.lance=0'],
  ];
  const env = { AWS_ACCESS_KEY_ID: 'test-key', AWS_SECRET_ACCESS_KEY: 'test-secret', TMPDIR: node.folder };
  return keepProgram({ name: 's3', node, command, env, logFile });
}
