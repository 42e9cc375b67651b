/** Makes the sandboxes of a worker in a cluster. */
import type { ImageService } from '@runyard/contract/environments/services';
import { readImageName } from '@runyard/contract/runs/image-names';
import type { SandboxLevel } from '@runyard/contract/workers/worker-protocol';
import { newSandboxId } from '../bubblewrap/prepare.ts';
import { type Sandbox, type SandboxBackend, SandboxError, type SandboxSpecification } from '../sandbox.ts';
import { ofService, refuseFiles, refuseSystem } from '../specification.ts';
import { type Cluster, ClusterError } from './cluster.ts';
import { jobOf, type PodGround } from './job.ts';
import type { Look } from './look.ts';
import { executionLabel, jobName, labelValue, ownedBy, proofAnnotation, recordAnnotation } from './names.ts';
import { type PodRecord, proofOf, recordOf } from './record.ts';
import { followJob, type RunningJob } from './sandbox.ts';
import { places } from './scripts.ts';
import { serviceLogs } from './service-logs.ts';

export interface KubernetesGround extends PodGround {
  readonly cluster: Cluster;
  readonly look: Look;
  readonly secret: string;
  readonly defaultImage: string;
  readonly registries: readonly string[];
  readonly startSeconds: number;
  readonly log: { warn(fields: object, message: string): void };
}

export interface BackendRequest {
  readonly level: SandboxLevel;
  readonly agentServiceRoot: string;
  /** Updates the network policy, because the addresses of the service may have changed. */
  readonly renewPolicy: () => Promise<void>;
}

/** Creates the backend. */
export function kubernetesBackend(
  ground: KubernetesGround,
  { level, agentServiceRoot, renewPolicy }: BackendRequest,
): SandboxBackend {
  return {
    describe: () => level,
    agentServiceRoot,
    async create(specification, signal) {
      refuseFiles(specification);
      refuseSystem(specification);
      const image = imageOf(ground, specification.image ?? ground.defaultImage);
      const services: ImageService[] = [];
      for (const service of specification.services ?? [])
        services.push({ ...service, image: await ofService(service.name, () => imageOf(ground, service.image)) });
      if (specification.egress !== undefined)
        throw refused(
          'network_not_supported',
          'the environment allows hosts (`network`), but pods can reach only the service: remove the hosts from the environment, or run it on a worker with RUNYARD_SANDBOX=docker or bubblewrap',
        );
      await renewPolicy().catch((error: Error) => {
        throw refused('cluster_failed', `the network policy of the pods could not be made: ${error.message}`);
      });
      signal.throwIfAborted();
      return podSandbox(ground, specification, { image, services }, signal);
    },
    async forget(executionId) {
      const selector = `${ownedBy(ground.owner)},${executionLabel}=${labelValue(executionId)}`;
      try {
        for (const { metadata } of await ground.cluster.listJobs(selector))
          await ground.cluster.deleteJob(metadata?.name ?? '', metadata?.uid);
      } catch (error) {
        ground.log.warn(
          { error: (error as Error).message },
          'the Job of an ended execution could not be deleted; the cluster removes it later',
        );
      }
    },
    async close() {
      ground.look.close();
    },
  };
}

const refused = (reason: string, message: string): SandboxError => new SandboxError('prepare', reason, message);

/** Returns the full name of the image. Throws if runs may not use it. */
function imageOf({ registries }: KubernetesGround, image: string): string {
  const read = readImageName(image);
  if (!read.ok) throw refused('image_refused', read.problem);
  const { full, registry } = read.name;
  if (!registries.includes(registry))
    throw refused(
      'image_refused',
      `the image ${full} is refused: this worker takes images of ${registries.join(', ')} only (RUNYARD_KUBERNETES_REGISTRIES)`,
    );
  return full;
}

function podSandbox(
  ground: KubernetesGround,
  specification: SandboxSpecification,
  { image, services }: { readonly image: string; readonly services: readonly ImageService[] },
  signal: AbortSignal,
): Sandbox {
  const { cluster } = ground;
  const id = newSandboxId();
  const name = jobName(ground.owner, id);
  const record: PodRecord = recordOf(specification, Date.now());
  const { promise: ended, resolve: end } = Promise.withResolvers<Awaited<Sandbox['ended']>>();
  let job: RunningJob | undefined;
  const logs = serviceLogs(cluster, services, specification.onService ?? (() => {}));

  return {
    id,
    workspace: places.workspace,
    ended,
    async spawn({ args, env, runToken }) {
      const { executionId, taskId, limits, vcpus } = specification;
      const text = JSON.stringify(record);
      const order = {
        id,
        executionId,
        taskId,
        image,
        limits,
        services,
        args,
        env,
        annotations: { [recordAnnotation]: text },
        ...(vcpus === undefined ? {} : { vcpus }),
      };
      let uid: string | undefined;
      try {
        const made = await cluster.createJob(jobOf(ground, order));
        uid = made.metadata?.uid ?? '';
        await cluster.createSecret(name, made, { token: runToken });
        signal.throwIfAborted();
        await cluster.release(name, uid, { [proofAnnotation]: proofOf(ground.secret, uid, text) });
      } catch (error) {
        if (uid !== undefined) await cluster.deleteJob(name, uid).catch(() => {});
        if (!(error instanceof ClusterError)) throw error;
        throw new SandboxError('prepare', 'cluster_failed', `the Job could not be made: ${error.message}`, {
          cause: error,
        });
      }
      const running = follow(ground, { name, uid, image });
      job = running;
      void running.ended.then(async (exit) => {
        await logs.report(running.pod());
        end(exit);
      });
      const stop = () => running.kill('kill');
      // Checks the signal again, because the execution may have been cancelled during the request that releases the Job.
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop, { once: true });
      const failure = await running.started;
      signal.removeEventListener('abort', stop);
      if (failure !== undefined) {
        const { outputTail } = await running.ended;
        const output = outputTail.trim() === '' ? '' : `\nEnd of the pod's output:\n${outputTail.trim().slice(-2000)}`;
        throw new SandboxError('prepare', failure.reason, `${failure.message}${output}`);
      }
      await cluster.deleteSecret(name).catch((error: Error) => {
        ground.log.warn(
          { job: name, error: error.message },
          'the Secret of a started pod could not be deleted; it will be deleted with the Job',
        );
      });
      void logs.report(running.pod());
    },
    // After each turn, the agent begins to wait.
    rest(isResting) {
      if (isResting) void logs.report(job?.pod());
    },
    kill: (how) => job?.kill(how),
    async dispose() {
      if (job !== undefined) await ended;
    },
  };
}

/** Follows a Job that was released, so that its pod can start. */
export const follow = (
  ground: KubernetesGround,
  { name, uid, image }: { readonly name: string; readonly uid: string; readonly image: string },
): RunningJob =>
  followJob({
    cluster: ground.cluster,
    look: ground.look,
    name,
    uid,
    image,
    agentImage: ground.agentImage,
    startSeconds: ground.startSeconds,
    startBy: performance.now() + ground.startSeconds * 1000,
    log: ground.log,
  });
