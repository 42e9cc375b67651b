/** Follows the sandbox of one execution, which is a Job, from the release of the Job to its end. */
import type { V1Pod } from '@kubernetes/client-node';
import { lastPart } from '@runyard/contract/wire/shorten';
import type { SandboxExit, SandboxVerdict } from '../sandbox.ts';
import type { Cluster } from './cluster.ts';
import type { Look } from './look.ts';
import { readLostJob, readPod } from './pod-state.ts';

export interface JobRequest {
  readonly cluster: Cluster;
  readonly look: Look;
  readonly name: string;
  readonly uid: string;
  /** Names of the two images, for messages. */
  readonly image: string;
  readonly agentImage: string;
  /** Time at which the agent must run at the latest, by the clock of `performance.now()`. */
  readonly startBy: number;
  readonly startSeconds: number;
  readonly log: { warn(fields: object, message: string): void };
}

/** A released Job. */
export interface RunningJob {
  /**
   * Resolves with undefined when the agent runs or has run. If the agent will never run, deletes the Job and resolves with a verdict.
   * Never rejects.
   */
  readonly started: Promise<SandboxVerdict | undefined>;
  /** Resolves when no process of the pod is left. */
  readonly ended: Promise<SandboxExit>;
  kill(how: 'terminate' | 'kill'): void;
  /** Returns the pod, as the last read returned it. */
  pod(): V1Pod | undefined;
}

/** Number of characters that are kept from the end of the output. Other backends have the same limit. */
const keptCharacters = 64 * 1024;
/**
 * Seconds between SIGTERM and SIGKILL, for `terminate` and for `kill`. `kill` uses 1 and not 0, because with 0 the cluster would
 * forget the pod at once, although its processes may still run.
 */
const graceSeconds = { terminate: 10, kill: 1 } as const;
const killAgainMs = 5000;
/**
 * If a deleted pod still exists this long after its grace period, its node is lost or cut off from the cluster. The cluster itself would
 * delete the pods of such a node later: after 5 minutes, unless a toleration in the pod template sets another time.
 */
const silentNodeMs = 60_000;

/** Follows a released Job to its end. */
export function followJob(request: JobRequest): RunningJob {
  const { cluster, look, name, uid, log } = request;
  const { promise: started, resolve: start } = Promise.withResolvers<SandboxVerdict | undefined>();
  let verdict: SandboxVerdict | undefined;
  let pods: readonly V1Pod[] = [];
  let firstPod: string | undefined;
  let killedAt = 0;
  let deletedAt: number | undefined;
  let exit: Omit<SandboxExit, 'outputTail'> | undefined;

  const remove = async (how: 'terminate' | 'kill'): Promise<void> => {
    try {
      // Deletes the pods before the Job, because the first request that deletes a pod sets the grace period of the pod.
      for (const { metadata } of pods) await cluster.deletePod(metadata?.name ?? '', metadata?.uid, graceSeconds[how]);
      await cluster.deleteJob(name, uid);
    } catch (error) {
      log.warn({ job: name, error: (error as Error).message }, 'a Job could not be deleted; trying again');
    }
  };
  const kill = (how: 'terminate' | 'kill'): void => {
    killedAt = performance.now();
    void remove(how);
  };
  const fail = (why: SandboxVerdict): void => {
    verdict ??= why;
    start(verdict);
    kill('kill');
  };

  /** End of the output of the service that ended before the agent ran. It must be read before the pod is deleted. */
  let outputOfService: Promise<string> | undefined;
  const failService = (why: SandboxVerdict, pod: V1Pod, container: string): void => {
    if (outputOfService !== undefined) return;
    outputOfService = tailOf(cluster, pod, container);
    void outputOfService.then(() => fail(why));
  };

  const seen = look.untilSeen(uid, (found) => {
    pods = found.pods;
    const pod = pods.find(({ metadata }) => metadata?.uid === firstPod) ?? pods[0];
    if (pod === undefined) {
      if (firstPod === undefined && found.job !== undefined && killedAt === 0) {
        if (performance.now() > request.startBy)
          fail(late(request, 'the cluster made no pod: see `kubectl describe job`'));
        return false;
      }
      // The Job has no pod yet or has lost its pod. If the worker has asked for the deletion of the Job, the sandbox has ended only
      // when the Job is gone too, because Kubernetes removes a Job after its pods.
      if (killedAt > 0 && found.job !== undefined) return retryKill();
      exit ??= { exitCode: 137, outOfMemory: false, ...(killedAt > 0 ? {} : { verdict: readLostJob(found.job) }) };
      return true;
    }
    firstPod ??= pod.metadata?.uid;
    const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata ?? {};
    if (deletionTimestamp !== undefined) deletedAt ??= performance.now();
    const state = readPod(pod, request.image, request.agentImage);
    if (state.phase === 'ended') {
      const { exitCode, outOfMemory, hasStarted } = state;
      const why = verdict ?? (killedAt > 0 ? undefined : state.verdict);
      exit ??= { exitCode, outOfMemory, ...(why === undefined ? {} : { verdict: why }) };
      start(hasStarted ? undefined : why);
      // If the Job has more than one pod, deletes all of them, because an execution must not start twice.
      return pods.length === 1 || retryKill();
    }
    if (deletedAt !== undefined && performance.now() - deletedAt > deletionGracePeriodSeconds * 1000 + silentNodeMs) {
      exit ??= { exitCode: 137, outOfMemory: false, ...(killedAt > 0 ? {} : { verdict: lostNode(pod) }) };
      // Empties `pods` so that the log is not read, because the log is on the lost node.
      pods = [];
      return true;
    }
    if (pods.length > 1)
      fail({ reason: 'pod_lost', message: 'the cluster replaced the pod of the sandbox, which must not start twice' });
    if (killedAt > 0) return retryKill();
    if (state.phase === 'running') start(undefined);
    else if (state.never === true && state.because !== undefined) {
      if (state.container === undefined) fail(state.because);
      else failService(state.because, pod, state.container);
    } else if (performance.now() > request.startBy) fail(state.because ?? late(request, 'the node did not start it'));
    return false;
  });

  const retryKill = (): false => {
    if (performance.now() - killedAt > killAgainMs) kill('kill');
    return false;
  };

  const ended = seen.then(async (): Promise<SandboxExit> => {
    const end = exit ?? { exitCode: 137, outOfMemory: false };
    const why = verdict ?? end.verdict;
    start(why ?? { reason: 'sandbox_ended', message: 'the sandbox was ended before its agent ran' });
    const outputTail = await (outputOfService ??
      (end.exitCode === 0 || pods.length === 0 ? '' : tailOf(cluster, pods[0])));
    return { ...end, ...(why === undefined ? {} : { verdict: why }), outputTail };
  });
  return { started, ended, kill, pod: () => pods[0] };
}

const late = ({ startSeconds }: JobRequest, why: string): SandboxVerdict => ({
  reason: 'pod_not_started',
  message: `the pod did not start within ${startSeconds} s (RUNYARD_KUBERNETES_START_SECONDS): ${why}`,
});

const lostNode = ({ spec }: V1Pod): SandboxVerdict => ({
  reason: 'node_lost',
  message: `the node ${spec?.nodeName ?? ''} of the sandbox does not answer the cluster, which deleted the pod. Run it again, or use on_worker_loss: resume`,
});

/** Matches tokens of runs and keys of the service. */
const secrets = /\bry[a-z]_[A-Za-z0-9_-]{8,}/g;

/**
 * Returns the end of the output of a container. Default: the agent's container, or, if it has not started, the container that copies
 * the agent's files. The agent has already redacted the secrets of the run.
 */
async function tailOf(cluster: Cluster, pod: V1Pod | undefined, container?: string): Promise<string> {
  const name = pod?.metadata?.name ?? '';
  const began = (pod?.status?.containerStatuses ?? []).some(
    ({ name: is, state }) => is === 'agent' && state?.terminated?.containerID,
  );
  try {
    const text = await cluster.logOf(name, container ?? (began ? 'agent' : 'place-agent'));
    return lastPart(text.replaceAll('\u0000', '').replaceAll(secrets, '[redacted]'), keptCharacters);
  } catch (error) {
    return `(the log of the pod cannot be read: ${(error as Error).message})`;
  }
}
