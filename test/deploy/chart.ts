/**
 * Renders the chart with four sets of values. bin/test-long runs bin/prepare-deploy.sh, which installs helm, kubeconform and the schemas
 * of Kubernetes. A test is skipped if one of these is missing and the test needs it.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'vitest';
import { parseAllDocuments } from 'yaml';

export const root = path.resolve(import.meta.dirname, '../..');
const cache = process.env.XDG_CACHE_HOME ?? path.join(homedir(), '.cache');
export const tools = path.join(process.env.RUNYARD_DEPLOY_CACHE ?? path.join(cache, 'runyard/deploy'), '2');
export const hasTools = existsSync(path.join(tools, 'schemas'));
export const skipped = hasTools ? '' : ' (skipped: bin/test-long makes helm and kubeconform)';
export const folder = mkdtempSync(path.join(tmpdir(), 'runyard-deploy-'));
// Test files of one process share this module, so no single file may remove the folder at its end.
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));

export type Labels = Readonly<Record<string, string>>;
export interface Selector {
  readonly matchLabels?: Labels;
}

type Peers = readonly { readonly podSelector?: Selector }[];
interface Rule {
  readonly ports?: readonly { readonly port: number | string }[];
  readonly from?: Peers;
  readonly to?: Peers;
}

interface Container {
  readonly image: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly resources?: { readonly limits?: Labels };
  readonly securityContext?: Readonly<Record<string, unknown>>;
}

export interface PodSpec {
  readonly serviceAccountName?: string;
  readonly automountServiceAccountToken?: boolean;
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly containers: readonly Container[];
  readonly hostNetwork?: boolean;
  readonly volumes?: readonly Readonly<Record<string, unknown>>[];
}

interface PodTemplate {
  readonly metadata?: { readonly labels?: Labels };
  readonly spec: PodSpec;
}

/** Returns the template of the pods that a resource makes. */
export const podTemplateOf = ({ spec }: Resource): PodTemplate | undefined =>
  spec?.template ?? spec?.jobTemplate?.spec.template;

export interface Resource {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Labels };
  readonly spec?: {
    readonly template?: PodTemplate;
    readonly jobTemplate?: { readonly spec: { readonly template: PodTemplate } };
    readonly podSelector?: Selector;
    readonly selector?: Selector;
    readonly ingress?: readonly Rule[];
    readonly egress?: readonly Rule[];
    readonly [member: string]: unknown;
  };
  readonly rules?: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[];
}

export const least = {
  baseUrl: 'https://runyard.example.com',
  database: { existingSecret: 'database' },
  blobs: { url: 's3://runyard/blobs' },
  secrets: { existingSecret: 'keys' },
  runs: { runtimeClassName: 'gvisor' },
};
export const full = {
  ...least,
  image: { registry: 'registry.example.com/team/', tag: '1.2.3', pullSecrets: ['registry'] },
  blobs: { url: 's3://runyard', downloads: 'service', endpoint: 'http://s3:8333', existingSecret: 'bucket' },
  service: {
    replicas: 3,
    env: { RUNYARD_RETENTION_RUN_DAYS: 90, OTEL_SERVICE_NAME: 'runyard' },
    secretEnv: { RUNYARD_ANTHROPIC_API_KEY: { secret: 'models', key: 'anthropic' } },
    minAvailable: 2,
    podAnnotations: { a: 'b' },
    nodeSelector: { pool: 'services' },
    tolerations: [{ key: 'services', operator: 'Exists' }],
    serviceAccountAnnotations: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/runyard' },
    extraVolumes: [{ name: 'policy', configMap: { name: 'policy' } }],
    extraVolumeMounts: [{ name: 'policy', mountPath: '/policy', readOnly: true }],
    extraEnv: [{ name: 'HTTPS_PROXY', valueFrom: { configMapKeyRef: { name: 'proxy', key: 'url' } } }],
    autoscaling: { enabled: true, maxReplicas: 9 },
  },
  signOn: { existingSecret: 'sign-on', key: 'oidc.yaml' },
  ca: { existingConfigMap: 'authorities', key: 'company.pem' },
  backup: { enabled: true, existingClaim: 'backups' },
  ingress: {
    enabled: true,
    className: 'nginx',
    host: 'runyard.example.com',
    tlsSecret: 'tls',
    annotations: { c: 'd' },
    trustedProxies: ['10.244.0.0/16', 'fd00::/64'],
  },
  metrics: {
    enabled: true,
    existingSecret: 'metrics',
    serviceMonitor: true,
    serviceMonitorLabels: { release: 'p' },
    job: 'agents',
    prometheusRule: true,
    prometheusRuleLabels: { release: 'p' },
  },
  worker: {
    replicas: 4,
    existingSecret: 'pool',
    key: 'key',
    name: 'pool-$(POD_NAME)',
    persistence: { storageClass: 'fast' },
    extraVolumes: [{ name: 'harnesses', persistentVolumeClaim: { claimName: 'harnesses' } }],
    extraVolumeMounts: [{ name: 'harnesses', mountPath: '/harnesses', readOnly: true }],
    extraEnv: [{ name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
  },
  runs: {
    ...least.runs,
    registries: ['ghcr.io', 'docker.io'],
    podTemplate: { spec: { nodeSelector: { pool: 'runs' } } },
    quota: { pods: '50', 'limits.memory': '100Gi' },
  },
  networkPolicy: {
    serviceFrom: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'ingress-nginx' } } }],
  },
};
export const unsafe = {
  ...least,
  worker: { persistence: { enabled: false } },
  runs: { createNamespace: false },
  unsafe: { shareKernelOfNodes: true, withoutNetworkPolicies: true, allowCloudMetadata: true },
};
export const sets = { least, full, unsafe, 'without a worker': { ...least, runs: {}, worker: { enabled: false } } };

const chart = path.join(root, 'deploy/helm/runyard');
const rest = ['ry', chart, '--namespace', 'runyard'];
const helmWords = {
  lint: ['lint', chart],
  template: ['template', ...rest],
  install: ['install', ...rest, '--dry-run=client'],
};
const env = { PATH: process.env.PATH, HOME: folder };
let files = 0;
/** Writes the values into a file and returns its path. */
function fileOf(values: object): string {
  files += 1;
  const file = path.join(folder, `${files}.json`);
  writeFileSync(file, JSON.stringify(values));
  return file;
}
/** Runs helm with the values. */
export function helm(
  command: keyof typeof helmWords,
  values: object,
): { readonly status: number | null; readonly output: string } {
  const words = [...helmWords[command], '--values', fileOf(values)];
  const { status, stdout, stderr } = spawnSync(path.join(tools, 'helm'), words, { encoding: 'utf8', env });
  return { status, output: status === 0 ? stdout : stdout + stderr };
}
const rendered = new Map<object, { readonly text: string; readonly resources: Resource[] }>();
/** Returns the objects of the chart with these values. */
export function render(values: object): { readonly text: string; readonly resources: Resource[] } {
  const known = rendered.get(values);
  if (known !== undefined) return known;
  const { status, output } = helm('template', values);
  expect(status, output).toBe(0);
  const documents = parseAllDocuments(output).map((document) => document.toJS() as Resource | null);
  const made = { text: output, resources: documents.filter((each) => each !== null) };
  rendered.set(values, made);
  return made;
}

/** Renders the chart as `helm template --dry-run=server` does, with the answers of the API server that the kubeconfig names. */
export async function renderWith(kubeconfig: string, values: object): Promise<string> {
  const server = ['--dry-run=server', '--disable-openapi-validation', '--kubeconfig', kubeconfig];
  const words = [...helmWords.template, '--values', fileOf(values), ...server];
  const helmProcess = spawn(path.join(tools, 'helm'), words, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [output, errors] = await Promise.all([text(helmProcess.stdout), text(helmProcess.stderr)]);
  return errors === '' ? output : errors;
}
