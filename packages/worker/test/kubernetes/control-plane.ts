/**
 * Starts a control plane for a test: etcd, and the API server, the controllers and the scheduler of Kubernetes. `bin/test-kubernetes`
 * builds these programs.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { openSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CoreV1Api, KubeConfig, RbacAuthorizationV1Api, type V1PolicyRule, VersionApi } from '@kubernetes/client-node';
import { parseAllDocuments } from 'yaml';
import { freePort } from '../../../../test/support/free-port.ts';
import { eventually, killHard } from '../../../../test/support/system.ts';

export interface ControlPlane extends AsyncDisposable {
  readonly folder: string;
  /** URL of the API server. */
  readonly server: string;
  /** Kubeconfig of a user who may do everything. */
  readonly admin: KubeConfig;
  /** Kubeconfig file of a user who has the Role that docs/isolation.md defines for workers. */
  readonly workerConfig: string;
  readonly workerToken: string;
  readonly namespace: string;
}

export const namespace = 'runyard';
const workerUser = 'runyard-worker';

/** Starts a control plane. `programs` is the folder with `etcd` and `cluster`. */
export async function startControlPlane(programs: string): Promise<ControlPlane> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-cluster-'));
  const log = openSync(path.join(folder, 'log'), 'a');
  const children: ChildProcess[] = [];
  const start = (program: string, ...args: string[]) => {
    const child = spawn(path.join(programs, program), args, { stdio: ['ignore', log, log], cwd: folder });
    children.push(child);
  };
  const stop = async () => {
    for (const child of children.reverse()) await killHard(child);
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  };
  try {
    const [etcdPort, peerPort, port] = [await freePort(), await freePort(), await freePort()];
    const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
    openssl('genrsa', '-out', 'sa.key', '2048');
    openssl('rsa', '-in', 'sa.key', '-pubout', '-out', 'sa.pub');
    openssl(
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-keyout',
      'server.key',
      '-out',
      'server.crt',
      '-days',
      '2',
      '-subj',
      '/CN=127.0.0.1',
      '-addext',
      'subjectAltName=IP:127.0.0.1,IP:10.0.0.1',
    );
    const [adminToken, workerToken] = [randomBytes(16).toString('hex'), randomBytes(16).toString('hex')];
    await writeFile(
      path.join(folder, 'tokens.csv'),
      `${adminToken},admin,1,system:masters\n${workerToken},${workerUser},2\n`,
    );
    const etcd = `http://127.0.0.1:${etcdPort}`;
    start(
      'etcd',
      '--data-dir',
      'etcd',
      '--listen-client-urls',
      etcd,
      '--advertise-client-urls',
      etcd,
      '--listen-peer-urls',
      `http://127.0.0.1:${peerPort}`,
      '--initial-advertise-peer-urls',
      `http://127.0.0.1:${peerPort}`,
      '--initial-cluster',
      `default=http://127.0.0.1:${peerPort}`,
    );
    start(
      'cluster',
      'apiserver',
      '--etcd-servers',
      etcd,
      '--bind-address',
      '127.0.0.1',
      '--secure-port',
      String(port),
      '--tls-cert-file',
      'server.crt',
      '--tls-private-key-file',
      'server.key',
      '--service-account-issuer',
      'https://kubernetes.default.svc',
      '--service-account-key-file',
      'sa.pub',
      '--service-account-signing-key-file',
      'sa.key',
      '--service-cluster-ip-range',
      '10.0.0.0/24',
      '--authorization-mode',
      'RBAC',
      '--token-auth-file',
      'tokens.csv',
      '--kubelet-preferred-address-types',
      'InternalIP',
    );
    const server = `https://127.0.0.1:${port}`;
    const configOf = async (name: string, token: string): Promise<string> => {
      const file = path.join(folder, `${name}.json`);
      await writeFile(
        file,
        JSON.stringify(kubeconfig({ server, 'certificate-authority': path.join(folder, 'server.crt') }, token)),
        { mode: 0o600 },
      );
      return file;
    };
    const adminConfig = await configOf('admin', adminToken);
    const admin = new KubeConfig();
    admin.loadFromFile(adminConfig);
    const limitMs = 180_000;
    const logEnd = async () => (await readFile(path.join(folder, 'log'), 'utf8')).slice(-2000);
    await eventually(
      'start of the API server',
      async () => {
        const ended = children.find((child) => child.exitCode !== null);
        if (ended !== undefined) throw new Error(`${ended.spawnargs.slice(0, 2).join(' ')} ended:\n${await logEnd()}`);
        return await admin
          .makeApiClient(VersionApi)
          .getCode()
          .catch(() => null);
      },
      limitMs,
    );
    start(
      'cluster',
      'controllers',
      '--kubeconfig',
      adminConfig,
      '--leader-elect=false',
      '--secure-port=0',
      '--service-account-private-key-file',
      'sa.key',
      '--root-ca-file',
      'server.crt',
      '--controllers',
      [
        ...[
          'job',
          'garbage-collector',
          'ttl-after-finished',
          'serviceaccount',
          'namespace',
          'deployment',
          'replicaset',
        ],
        ...['statefulset', 'disruption', 'resourcequota', 'root-ca-certificate-publisher'],
      ]
        .map((name) => `${name}-controller`)
        .join(),
    );
    start('cluster', 'scheduler', '--kubeconfig', adminConfig, '--leader-elect=false', '--secure-port=0');
    const core = admin.makeApiClient(CoreV1Api);
    await eventually(
      'the first namespace',
      () =>
        core
          .createNamespace({
            body: { metadata: { name: namespace, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } } },
          })
          .catch(() => null),
      limitMs,
    );
    await giveRole(admin);
    await eventually(
      'the service account of the namespace',
      () => core.readNamespacedServiceAccount({ name: 'default', namespace }).catch(() => null),
      limitMs,
    );
    const workerConfig = await configOf('worker', workerToken);
    return { folder, server, admin, workerConfig, workerToken, namespace, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Returns the content of a kubeconfig file. */
export const kubeconfig = (cluster: object, token: string) => ({
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'test', cluster }],
  users: [{ name: 'test', user: { token } }],
  contexts: [{ name: 'test', context: { cluster: 'test', user: 'test', namespace } }],
  'current-context': 'test',
});

/** Makes the Role of docs/isolation.md, and gives it to the user of the workers. */
async function giveRole(admin: KubeConfig): Promise<void> {
  const docs = await readFile(path.resolve(import.meta.dirname, '../../../../docs/isolation.md'), 'utf8');
  const manifest = docs
    .split('```yaml\n')
    .map((part) => part.split('\n```')[0] ?? '')
    .find((part) => part.includes('kind: Role\n'));
  const documents = parseAllDocuments(manifest ?? '').map((document) => document.toJSON());
  await bindRole(admin, namespace, documents.find(({ kind }) => kind === 'Role').rules);
}

/** Creates a namespace in which the workers' user has the Role for workers. */
export async function makeNamespace(admin: KubeConfig, name: string, rules: V1PolicyRule[]): Promise<void> {
  await admin.makeApiClient(CoreV1Api).createNamespace({ body: { metadata: { name } } });
  await bindRole(admin, name, rules);
}

async function bindRole(admin: KubeConfig, of: string, rules: V1PolicyRule[]): Promise<void> {
  const apiGroup = 'rbac.authorization.k8s.io';
  const rbac = admin.makeApiClient(RbacAuthorizationV1Api);
  const metadata = { name: 'worker' };
  await rbac.createNamespacedRole({ namespace: of, body: { metadata, rules } });
  const subjects = [{ apiGroup, kind: 'User', name: workerUser }];
  const roleRef = { apiGroup, kind: 'Role', name: 'worker' };
  await rbac.createNamespacedRoleBinding({ namespace: of, body: { metadata, roleRef, subjects } });
}
