/** The state of a sandbox, read from its pod and its Job. */
import type { V1ContainerStatus, V1Job, V1Pod } from '@kubernetes/client-node';
import type { SandboxVerdict } from '../sandbox.ts';
import { serviceOf } from './services.ts';

export type PodState =
  /**
   * The pod has not started yet. `because`: the last message of the scheduler or the node. `never`: true if the pod will never start.
   * `container`: the container of the service that ended.
   */
  | {
      readonly phase: 'starting';
      readonly because?: SandboxVerdict;
      readonly never?: boolean;
      readonly container?: string;
    }
  | { readonly phase: 'running' }
  /** No process of the pod is left. `verdict`: why the cluster ended the pod, or why it never started. */
  | {
      readonly phase: 'ended';
      readonly exitCode: number;
      readonly outOfMemory: boolean;
      readonly hasStarted: boolean;
      readonly verdict?: SandboxVerdict;
    };

/** Returns the state of a pod. `image` and `agentImage` are for messages. */
export function readPod(pod: V1Pod, image: string, agentImage: string): PodState {
  const { status = {}, spec } = pod;
  const agent = status.containerStatuses?.find(({ name }) => name === 'agent');
  const placer = status.initContainerStatuses?.find(({ name }) => name === 'place-agent');
  const end = agent?.state?.terminated;
  if (status.phase === 'Succeeded' || status.phase === 'Failed') {
    const verdict = verdictOf(pod, placer, agentImage, image);
    return {
      phase: 'ended',
      exitCode: end?.exitCode ?? (status.phase === 'Succeeded' ? 0 : 137),
      outOfMemory: end?.reason === 'OOMKilled',
      hasStarted: end?.startedAt !== undefined && end.reason !== 'StartError',
      ...(verdict === undefined ? {} : { verdict }),
    };
  }
  if (agent?.state?.running !== undefined || end !== undefined) return { phase: 'running' };
  const waiting =
    faultOf(placer, agentImage) ??
    faultOfServices(pod) ??
    faultOf(agent, image) ??
    (spec?.nodeName === undefined ? unscheduled(pod) : undefined);
  if (waiting === undefined) return { phase: 'starting' };
  const { never = false, container, ...because } = waiting;
  return { phase: 'starting', because, ...(never ? { never } : {}), ...(container === undefined ? {} : { container }) };
}

type Fault = SandboxVerdict & { readonly never?: boolean; readonly container?: string };

/** A message contains at most this number of characters of a text from the cluster. */
const longest = 500;
const shortText = (text: string | undefined): string => (text ?? '').trim().slice(0, longest);

function unscheduled({ status }: V1Pod): Fault | undefined {
  const found = status?.conditions?.find(({ type, status: is }) => type === 'PodScheduled' && is === 'False');
  if (found === undefined) return undefined;
  return {
    reason: 'pod_unschedulable',
    message: `no node of the cluster takes the pod: ${shortText(found.message)}. Lower the memory or the shape of the run, add nodes, or change RUNYARD_KUBERNETES_POD_TEMPLATE`,
  };
}

/** Returns why a service does not start, or has ended before it was ready. */
function faultOfServices({ spec, status }: V1Pod): Fault | undefined {
  for (const found of status?.initContainerStatuses ?? []) {
    const service = serviceOf(found.name);
    if (service === undefined) continue;
    const image = spec?.initContainers?.find(({ name }) => name === found.name)?.image ?? '';
    const fault = faultOf(found, image);
    if (fault !== undefined) return { ...fault, message: `the service ${service}: ${fault.message}` };
    const end = endOfService(found);
    if (end !== undefined)
      return {
        reason: 'service_not_started',
        message: `The service ${service} ${end} before it was ready. Fix the service in the environment's services, and run again.`,
        never: true,
        container: found.name,
      };
  }
  return undefined;
}

/** Returns how a service ended. The cluster may have started it again. Returns undefined if it has not ended. */
export function endOfService({ state, lastState }: V1ContainerStatus): string | undefined {
  const end = state?.terminated ?? lastState?.terminated;
  if (end === undefined) return undefined;
  return end.reason === 'OOMKilled' ? 'used up its memory and was ended' : `exited with code ${end.exitCode}`;
}

/** Returns why a container does not start. Returns undefined if nothing prevents the start or the container has started. */
function faultOf(found: V1ContainerStatus | undefined, image: string): Fault | undefined {
  const { reason = '', message } = found?.state?.waiting ?? {};
  if (
    /^(?:ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull|RegistryUnavailable|ImageInspectError)$/.test(
      reason,
    )
  )
    return imageFault(image, reason, shortText(message));
  if (/^(?:CreateContainerConfigError|CreateContainerError|RunContainerError)$/.test(reason))
    return { reason: 'pod_not_started', message: `the node cannot start the pod (${reason}): ${shortText(message)}` };
  return undefined;
}

/**
 * Returns the fault that a node's error text about an image describes. The text comes from containerd or CRI-O. It must be parsed, because
 * no other member of the pod shows the kind of fault.
 */
export function imageFault(image: string, reason: string, text: string): Fault {
  const fault = (name: string, why: string, never: boolean): Fault => ({
    reason: name,
    message: `the image ${image} could not be pulled: ${why} (${text || reason})`,
    never,
  });
  if (reason === 'InvalidImageName') return fault('image_refused', 'its name is wrong', true);
  if (
    /no match for platform|no matching manifest|does not match the specified platform|no image found in (?:manifest list|image index) for architecture/i.test(
      text,
    )
  )
    return fault(
      'image_wrong_architecture',
      'it does not exist for the architecture of the node; name an image that does, or choose other nodes in RUNYARD_KUBERNETES_POD_TEMPLATE',
      true,
    );
  if (/unauthorized|authentication required|no basic auth|denied|forbidden|\b40[13]\b/i.test(text))
    return fault(
      'image_no_access',
      'its registry wants credentials, or does not have it. Check the name; for a private image, the operator adds imagePullSecrets to RUNYARD_KUBERNETES_POD_TEMPLATE',
      true,
    );
  if (/manifest unknown|not found|name unknown|\b404\b/i.test(text))
    return fault('image_not_found', 'its registry does not have it; check name and tag', true);
  // A registry that does not answer now may answer later.
  return fault('image_not_pulled', 'the node tries again until the time for the start is over', false);
}

/** Returns why the cluster ended a pod, or why the pod never started. Returns undefined if the pod ended because its agent ended. */
function verdictOf(
  { status = {} }: V1Pod,
  placer: V1ContainerStatus | undefined,
  agentImage: string,
  image: string,
): SandboxVerdict | undefined {
  const { reason, message } = status;
  if (reason === 'Evicted')
    return /emptydir|ephemeral|storage/i.test(message ?? '')
      ? {
          reason: 'disk_limit',
          message: `the sandbox used more disk than it may: ${shortText(message)}. Let the agent write less, or raise RUNYARD_SANDBOX_DISK_MB`,
        }
      : { reason: 'pod_evicted', message: `the node ended the pod: ${shortText(message)}. Run it again` };
  if (reason === 'DeadlineExceeded') return deadline;
  const placed = placer?.state?.terminated;
  if (placed !== undefined && placed.exitCode !== 0)
    return {
      reason: 'agent_not_placed',
      message: `the image of the agent, ${agentImage}, could not place the agent in the pod (exit code ${placed.exitCode}): ${wrongProgram(placed.message) ?? 'check RUNYARD_KUBERNETES_AGENT_IMAGE'}`,
    };
  const end = status.containerStatuses?.find(({ name }) => name === 'agent')?.state?.terminated;
  if (end?.reason === 'StartError')
    return {
      reason: wrongProgram(end.message) === undefined ? 'agent_not_started' : 'image_wrong_architecture',
      message: `the agent could not be started in the image ${image}: ${wrongProgram(end.message) ?? shortText(end.message)}`,
    };
  const disrupted = status.conditions?.find(({ type, status: is }) => type === 'DisruptionTarget' && is === 'True');
  if (disrupted !== undefined)
    return {
      reason: 'pod_evicted',
      message: `the cluster ended the pod: ${shortText(disrupted.message)}. Run it again`,
    };
  if (end === undefined && status.phase === 'Failed')
    return {
      reason: 'pod_lost',
      message: `the cluster ended the pod: ${shortText(message) || reason || 'it gave no reason'}`,
    };
  return undefined;
}

const wrongProgram = (text: string | undefined): string | undefined =>
  /exec format error/i.test(text ?? '') ? 'it is for another architecture than the node' : undefined;

export const deadline: SandboxVerdict = {
  reason: 'deadline_exceeded',
  message:
    'the pod ran longer than RUNYARD_KUBERNETES_DEADLINE_HOURS of the worker, and the cluster ended it. Split the task, or raise the setting',
};

/** Returns why a Job has no pod although the worker did not delete the pod. */
export function readLostJob(job: V1Job | undefined): SandboxVerdict {
  if (job === undefined)
    return { reason: 'job_deleted', message: 'someone deleted the Job of the sandbox in the cluster. Run it again' };
  const failed = job.status?.conditions?.find(({ type, status }) => /^Fail/.test(type) && status === 'True');
  if (failed?.reason === 'DeadlineExceeded') return deadline;
  return {
    reason: 'pod_lost',
    message: `the pod of the sandbox is gone: ${shortText(failed?.message) || 'it was deleted, or its node was removed'}. Run it again`,
  };
}
