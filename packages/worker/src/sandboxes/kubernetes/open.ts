/** Opens the backend. This file and the files that it imports need the client library. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLoopback } from '@runyard/system/address-rules';
import { readAuthorities } from '@runyard/system/trust-authorities';
import {
  type AdoptableSandbox,
  type AdoptRequest,
  type KubernetesSettings,
  type OpenRequest,
  type ProbeResult,
  unavailable,
} from '../backend-kind.ts';
import type { SandboxLimits } from '../limits.ts';
import type { SandboxBackend } from '../sandbox.ts';
import { adoptJobs } from './adopt.ts';
import { type KubernetesGround, kubernetesBackend } from './backend.ts';
import { type Cluster, type ClusterAddress, openCluster } from './cluster.ts';
import { jobOf } from './job.ts';
import { levelOf } from './level.ts';
import { openLook } from './look.ts';
import { ownedBy, policyName, sandboxOfJob } from './names.ts';
import { findService, policyOf, readServicePods } from './policy.ts';
import { openSecret, ownerOf } from './record.ts';
import { emptyTemplate, type PodTemplate, readTemplate } from './template.ts';

/** The cluster keeps an ended Job for at least this number of seconds, so that a worker can report the end. */
const leastKeptSeconds = 3600;

const addressOf = (settings: KubernetesSettings): ClusterAddress => ({
  config: settings.RUNYARD_KUBERNETES_CONFIG,
  namespace: settings.RUNYARD_KUBERNETES_NAMESPACE,
});

function templateOf({ RUNYARD_KUBERNETES_POD_TEMPLATE: file }: KubernetesSettings): PodTemplate {
  if (file === undefined) return emptyTemplate;
  try {
    return readTemplate(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Error(`RUNYARD_KUBERNETES_POD_TEMPLATE (${file}): ${(error as Error).message}`);
  }
}

interface GroundRequest {
  readonly cluster: Cluster;
  readonly secret: string;
  readonly settings: KubernetesSettings;
  readonly log: KubernetesGround['log'];
}

function groundOf({ cluster, secret, settings, log }: GroundRequest): KubernetesGround {
  const owner = ownerOf(secret);
  const agentImage = settings.RUNYARD_KUBERNETES_AGENT_IMAGE;
  if (agentImage === undefined)
    throw new Error(
      'RUNYARD_KUBERNETES_AGENT_IMAGE is missing: set it to the image with the agent; docs/isolation.md, "Sandboxes in a cluster", describes how to get this image',
    );
  const { RUNYARD_KUBERNETES_RUNTIME_CLASS: runtimeClass, RUNYARD_CA_FILE: caFile } = settings;
  return {
    cluster,
    look: openLook(cluster, owner, log),
    secret,
    namespace: cluster.namespace,
    owner,
    agentImage,
    defaultImage: settings.RUNYARD_KUBERNETES_IMAGE,
    registries: settings.RUNYARD_KUBERNETES_REGISTRIES,
    template: templateOf(settings),
    startSeconds: settings.RUNYARD_KUBERNETES_START_SECONDS,
    deadlineSeconds: settings.RUNYARD_KUBERNETES_DEADLINE_HOURS * 3600,
    keepSeconds: Math.max(leastKeptSeconds, settings.RUNYARD_ADOPT_SECONDS + 600),
    ...(runtimeClass === undefined ? {} : { runtimeClass }),
    ...(caFile === undefined ? {} : { certificates: readAuthorities(caFile) }),
    log,
  };
}

/**
 * Returns the URL at which pods reach the service. Throws if no setting names this URL and the worker's own URL has a loopback address,
 * which pods cannot reach.
 */
function serviceRootOf(settings: KubernetesSettings, serviceRoot: string): string {
  const given = settings.RUNYARD_KUBERNETES_SERVICE_URL;
  if (given !== undefined) return given;
  if (isLoopback(new URL(serviceRoot)))
    throw new Error(
      `pods cannot reach the service at ${serviceRoot}: set RUNYARD_KUBERNETES_SERVICE_URL to a URL that they can`,
    );
  return serviceRoot;
}

/** Asks the cluster to validate a Job with these settings, without creating the Job. Returns the problems that the cluster reports. */
async function problemsOf(ground: KubernetesGround, limits: SandboxLimits): Promise<string[]> {
  const { cluster } = ground;
  const missing = await cluster.missingRights();
  if (missing.length > 0)
    return [
      `the worker may not ${missing.join(', ')} in the namespace ${cluster.namespace}: give it the Role from docs/isolation.md, "Sandboxes in a cluster"`,
    ];
  const order = {
    id: '000000000000',
    executionId: 'probe',
    taskId: 'probe',
    image: ground.defaultImage,
    limits,
    services: [],
    args: [],
    env: {},
    annotations: {},
  };
  return await cluster.createJob(jobOf(ground, order), true).then(
    () => [],
    (error: Error) => [`the cluster would not take a Job: ${error.message}`],
  );
}

/** Asks the cluster whether a worker with these settings could run executions. Creates no objects in the cluster. */
export async function probeCluster(limits: SandboxLimits, settings: KubernetesSettings): Promise<ProbeResult> {
  const cluster = openCluster(addressOf(settings));
  const ground = groundOf({ cluster, secret: randomBytes(32).toString('hex'), settings, log: { warn: () => {} } });
  await cluster.version();
  const reasons = await problemsOf(ground, limits);
  return reasons.length > 0 ? unavailable('kubernetes', ...reasons) : { ok: true, reasons, level: levelOf(ground) };
}

/** Opens the backend. Rejects with the reason and the next step if the cluster cannot be used. */
export async function openKubernetes(
  request: OpenRequest,
): Promise<{ opened: SandboxBackend; address: ClusterAddress }> {
  const { state, limits, kubernetes: settings, serviceRoot, log } = request;
  const agentServiceRoot = serviceRootOf(settings, serviceRoot);
  const address = addressOf(settings);
  const cluster = openCluster(address);
  const ground = groundOf({ cluster, secret: openSecret(state.folder), settings, log });
  const version = await cluster.version();
  const problems = await problemsOf(ground, limits);
  if (problems.length > 0) throw new Error(`no sandbox: ${problems.join('; ')}`);
  const pods = settings.RUNYARD_KUBERNETES_SERVICE_PODS;
  let made = '';
  const renewPolicy = async (): Promise<void> => {
    const peer = pods === undefined ? await findService(agentServiceRoot) : readServicePods(pods);
    const policy = policyOf(cluster.namespace, ground.owner, peer);
    if (JSON.stringify(policy) === made) return;
    await cluster.putPolicy(policy);
    made = JSON.stringify(policy);
  };
  await renewPolicy();
  const level = levelOf(ground);
  log.info(
    { cluster: version, namespace: cluster.namespace, host: os.hostname(), features: level.features },
    'sandboxes are pods of a cluster',
  );
  return { opened: kubernetesBackend(ground, { level, agentServiceRoot, renewPolicy }), address };
}

/** Returns the sandboxes that earlier workers of the data folder left. */
export async function adoptSandboxes({ state, settings, log }: AdoptRequest): Promise<AdoptableSandbox[]> {
  const cluster = openCluster(addressOf(settings));
  return await adoptJobs(groundOf({ cluster, secret: openSecret(state.folder), settings, log }));
}

const pauseMs = 500;
const longestMs = 60_000;

/**
 * Deletes the Jobs of a data folder, except Jobs of sandboxes whose ids are in `kept`, and waits until the pods of the deleted Jobs have
 * ended. Returns their number.
 */
export async function deleteLeft(address: ClusterAddress, owner: string, kept: ReadonlySet<string>): Promise<number> {
  const cluster = openCluster(address);
  const isKept = (job: string | undefined): boolean => kept.has(sandboxOfJob(owner, job) ?? '');
  const jobs = (await cluster.listJobs(ownedBy(owner))).filter(({ metadata }) => !isKept(metadata?.name));
  const left = async () =>
    (await cluster.listPods(ownedBy(owner))).filter(
      ({ metadata, status }) =>
        !isKept(metadata?.ownerReferences?.[0]?.name) && status?.phase !== 'Succeeded' && status?.phase !== 'Failed',
    );
  for (const { metadata } of await left()) await cluster.deletePod(metadata?.name ?? '', metadata?.uid, 1);
  for (const { metadata } of jobs) await cluster.deleteJob(metadata?.name ?? '', metadata?.uid);
  const deadline = performance.now() + longestMs;
  while (jobs.length > 0 && (await left()).length > 0) {
    if (performance.now() > deadline) throw new Error('pods of ended runs still exist; their nodes may be unreachable');
    await sleep(pauseMs);
  }
  if (kept.size === 0) await cluster.deletePolicy(policyName(owner));
  return jobs.length;
}
