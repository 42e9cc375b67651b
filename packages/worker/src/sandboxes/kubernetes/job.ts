/** The Job of a sandbox. */
import type { V1Container, V1Job, V1PodSecurityContext, V1SecurityContext } from '@kubernetes/client-node';
import type { ImageService } from '@runyard/contract/environments/services';
import { withoutOpensslFile } from '../../runtime/agent-program.ts';
import { madeForSandbox } from '../base-environment.ts';
import type { SandboxLimits } from '../limits.ts';
import { jobName, labelsOf } from './names.ts';
import { agentUser, placeAgent, places, placing, placingUser } from './scripts.ts';
import { escaped, serviceContainers, serviceVolumes } from './services.ts';
import type { PodTemplate } from './template.ts';

/** Settings that are the same for all pods of a worker. */
export interface PodGround {
  readonly namespace: string;
  readonly owner: string;
  readonly agentImage: string;
  readonly template: PodTemplate;
  readonly runtimeClass?: string;
  /** Certificates of authorities (PEM) that the agent trusts in addition to Node's own list. */
  readonly certificates?: readonly string[];
  readonly deadlineSeconds: number;
  /** Seconds for which the cluster keeps an ended Job, if no worker removes it. */
  readonly keepSeconds: number;
}

export interface PodOrder {
  readonly id: string;
  readonly executionId: string;
  readonly taskId: string;
  readonly image: string;
  readonly limits: SandboxLimits;
  /** Processors of the run's instance shape. Absent if the run has no shape. */
  readonly vcpus?: number;
  /** The services, each with the full name of its image. */
  readonly services: readonly ImageService[];
  /** Arguments of the agent. No secrets. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Megabytes of disk that a pod gets in addition to the disk limit of the sandbox, for the agent's files and the logs of the pod. */
const ownDiskMb = 512;
/**
 * Variables of an image that would change how Node starts. The Job sets them to an empty value, which has no effect. Each name is
 * listed, because a Job cannot set variables by pattern.
 */
const withoutEffect = [
  'NODE_OPTIONS',
  'NODE_COMPILE_CACHE',
  'NODE_DEBUG',
  'NODE_DEBUG_NATIVE',
  'NODE_ICU_DATA',
  'NODE_PATH',
  'NODE_TLS_REJECT_UNAUTHORIZED',
  'NODE_USE_ENV_PROXY',
  'NODE_USE_SYSTEM_CA',
  'NODE_V8_COVERAGE',
  'LD_PRELOAD',
  'LD_AUDIT',
  'LD_LIBRARY_PATH',
  'GLIBC_TUNABLES',
  'NODE_EXTRA_CA_CERTS',
];

const container: V1SecurityContext = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  privileged: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
};

const pod: V1PodSecurityContext = {
  runAsNonRoot: true,
  runAsUser: agentUser,
  runAsGroup: agentUser,
  seccompProfile: { type: 'RuntimeDefault' },
};

const mebibytes = (amount: number): string => `${amount}Mi`;

/**
 * Returns the Job of a sandbox. The Job is created suspended and released later, because the Secret of the Job can be created only when
 * the Job has an id.
 */
export function jobOf(ground: PodGround, order: PodOrder): V1Job {
  const { template, owner } = ground;
  const labels = labelsOf(owner, order);
  const { services, limits } = order;
  const beside = { services, limits, securityContext: container, pullPolicy: pullPolicy(ground) };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: jobName(owner, order.id),
      namespace: ground.namespace,
      labels: { ...labels },
      annotations: { ...order.annotations },
    },
    spec: {
      suspend: true,
      parallelism: 1,
      completions: 1,
      // The cluster must not replace a pod that has ended or disappeared, because an execution is never started twice.
      backoffLimit: 0,
      podReplacementPolicy: 'Failed',
      activeDeadlineSeconds: ground.deadlineSeconds,
      ttlSecondsAfterFinished: ground.keepSeconds,
      template: {
        metadata: {
          labels: { ...template.labels, ...labels },
          annotations: { ...template.annotations },
        },
        spec: {
          ...template.spec,
          ...(ground.runtimeClass === undefined ? {} : { runtimeClassName: ground.runtimeClass }),
          restartPolicy: 'Never',
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          hostNetwork: false,
          hostPID: false,
          hostIPC: false,
          shareProcessNamespace: false,
          hostname: 'sandbox',
          terminationGracePeriodSeconds: 10,
          securityContext: pod,
          initContainers: [placer(ground), ...serviceContainers(beside)],
          containers: [agent(ground, order)],
          volumes: [...volumesOf(limits, jobName(owner, order.id)), ...serviceVolumes(beside)],
        },
      },
    },
  };
}

function placer(ground: PodGround): V1Container {
  return {
    name: 'place-agent',
    image: ground.agentImage,
    ...pullPolicy(ground),
    command: [`${places.agent}/node`, '-e', placeAgent(ground.runtimeClass !== undefined)],
    resources: { limits: { memory: '256Mi' }, requests: { cpu: '100m', memory: '128Mi' } },
    securityContext: { ...container, runAsUser: placingUser, runAsGroup: placingUser },
    volumeMounts: [
      { name: 'agent', mountPath: placing.target },
      { name: 'token', mountPath: placing.token },
      { name: 'secret', mountPath: placing.secret, readOnly: true },
    ],
  };
}

const pullPolicy = ({ template }: PodGround): Pick<V1Container, 'imagePullPolicy'> =>
  template.imagePullPolicy === undefined ? {} : { imagePullPolicy: template.imagePullPolicy };

function agent(ground: PodGround, { image, limits, vcpus, args, env }: PodOrder): V1Container {
  const { requests, limits: most } = ground.template.resources;
  const memory = mebibytes(limits.memoryMb);
  const disk = mebibytes(limits.diskMb + ownDiskMb);
  // If `limits.cpus` is set, no second limit is needed, because `limits.cpus` is never larger than the number of processors of the run's
  // instance shape.
  const cpus = limits.cpus > 0 ? limits.cpus : (vcpus ?? 0);
  const cpu = cpus > 0 ? { cpu: String(cpus) } : {};
  const variables = {
    ...Object.fromEntries(withoutEffect.map((name) => [name, ''])),
    ...env,
    // The agent needs the certificates, because in a pod no relay connects to the service in place of the agent.
    ...(ground.certificates === undefined ? {} : { RUNYARD_CA_CERTIFICATES: ground.certificates.join('\n\n') }),
    ...madeForSandbox,
    HOME: places.home,
    USER: 'agent',
    LANG: 'C.UTF-8',
    TERM: 'dumb',
  };
  return {
    name: 'agent',
    image,
    ...pullPolicy(ground),
    command: [`${places.agent}/node`, '--disable-sigusr1', withoutOpensslFile, `${places.agent}/start.mjs`],
    args: args.map(escaped),
    workingDir: places.workspace,
    env: Object.entries(variables).map(([name, value]) => ({ name, value: escaped(value) })),
    resources: {
      requests: { cpu: '100m', ...requests, ...cpu, memory, 'ephemeral-storage': mebibytes(ownDiskMb) },
      limits: { ...most, ...cpu, memory, 'ephemeral-storage': disk },
    },
    securityContext: container,
    volumeMounts: [
      { name: 'agent', mountPath: places.agent, readOnly: true },
      { name: 'agent', mountPath: '/etc/passwd', subPath: 'etc/passwd', readOnly: true },
      { name: 'agent', mountPath: '/etc/group', subPath: 'etc/group', readOnly: true },
      { name: 'token', mountPath: places.token },
      { name: 'work', mountPath: places.workspace, subPath: 'workspace' },
      { name: 'work', mountPath: places.home, subPath: 'home' },
      { name: 'tmp', mountPath: '/tmp' },
    ],
  };
}

const volumesOf = (limits: SandboxLimits, secret: string) => [
  { name: 'agent', emptyDir: { sizeLimit: mebibytes(ownDiskMb) } },
  { name: 'work', emptyDir: { sizeLimit: mebibytes(limits.diskMb) } },
  { name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: mebibytes(limits.tmpMb) } },
  { name: 'token', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
  // Only the container that copies the agent mounts the Secret.
  { name: 'secret', secret: { secretName: secret, defaultMode: 0o444 } },
];
