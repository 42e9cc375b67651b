/** The containers of services in the pod of a sandbox. */
import type { V1Container, V1SecurityContext, V1Volume } from '@kubernetes/client-node';
import type { ImageService } from '@runyard/contract/environments/services';
import { limitsOfServices, type SandboxLimits } from '../limits.ts';

export interface PodServices {
  /** The services, each with the full name of its image. */
  readonly services: readonly ImageService[];
  /** Limits of the sandbox. */
  readonly limits: SandboxLimits;
  readonly securityContext: V1SecurityContext;
  readonly pullPolicy: Pick<V1Container, 'imagePullPolicy'>;
}

/** Uid of services. It differs from the uids of the agent, so that the agent's kernel objects belong to another user. */
const serviceUser = 10003;
const prefix = 'service-';
/** Seconds for which a service may start. Agents give services of other workers the same time. */
const startSeconds = 120;
/** Megabytes of disk for the logs of a service. Its folders are in memory. */
const logDiskMb = 64;

/** Returns the name of a service; undefined if the container belongs to no service. */
export const serviceOf = (container: string): string | undefined =>
  container.startsWith(prefix) ? container.slice(prefix.length) : undefined;

/** Returns the name of the container of a service. */
export const containerOfService = (service: string): string => `${prefix}${service}`;

const mebibytes = (amount: number): string => `${amount}Mi`;

/** Escapes `$(`, because a cluster replaces `$(NAME)` in arguments and values by the variable of this name. */
export const escaped = (text: string): string => text.replaceAll('$(', '$$$$(');

/**
 * Returns the containers of the services: init containers that the cluster starts one after another, that run beside the agent, and that
 * end when the agent has ended. They have the network of the pod and mount nothing that the agent mounts.
 */
export function serviceContainers({ services, limits, securityContext, pullPolicy }: PodServices): V1Container[] {
  const { memoryMb, cpus } = limitsOfServices(limits, Math.max(1, services.length));
  const memory = mebibytes(memoryMb);
  const cpu = cpus > 0 ? { cpu: `${Math.max(1, Math.floor(cpus * 1000))}m` } : {};
  return services.map(({ name, image, args, env, port }) => ({
    name: containerOfService(name),
    image,
    ...pullPolicy,
    restartPolicy: 'Always',
    ...(args === undefined ? {} : { args: args.map(escaped) }),
    env: Object.entries({ HOME: '/tmp', ...env }).map(([key, value]) => ({ name: key, value: escaped(value) })),
    ...(port === undefined
      ? {}
      : { startupProbe: { tcpSocket: { port }, periodSeconds: 1, failureThreshold: startSeconds } }),
    resources: {
      requests: { cpu: '100m', ...cpu, memory, 'ephemeral-storage': mebibytes(logDiskMb) },
      limits: { ...cpu, memory, 'ephemeral-storage': mebibytes(logDiskMb) },
    },
    securityContext: { ...securityContext, runAsUser: serviceUser, runAsGroup: serviceUser },
    volumeMounts: ['tmp', 'run'].map((subPath) => ({
      name: containerOfService(name),
      mountPath: `/${subPath}`,
      subPath,
    })),
  }));
}

/** Returns the volumes of `serviceContainers`. */
export function serviceVolumes({ services, limits }: Pick<PodServices, 'services' | 'limits'>): V1Volume[] {
  const { memoryMb } = limitsOfServices(limits, Math.max(1, services.length));
  return services.map(({ name }) => ({
    name: containerOfService(name),
    emptyDir: { medium: 'Memory', sizeLimit: mebibytes(memoryMb) },
  }));
}
