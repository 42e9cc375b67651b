import { imagesFeature, type SandboxLevel } from '@runyard/contract/workers/worker-protocol';
import type { PodGround } from './job.ts';

/** Returns how well pods isolate, as far as the cluster promises it, because a worker cannot see what a node does. */
export function levelOf({ runtimeClass }: Pick<PodGround, 'runtimeClass'>): SandboxLevel {
  const features = [imagesFeature, 'no-new-privileges', 'seccomp', 'memory-limit', 'disk-limit', 'read-only-root'];
  const missing: SandboxLevel['missing'] = [
    {
      feature: 'no-network',
      reason:
        'a NetworkPolicy lets pods reach only the service and the name servers; whether it has an effect depends on the network plugin of the cluster, which the worker cannot see',
    },
    {
      feature: 'process-limit',
      reason: 'pods have no limit on processes of their own: set podPidsLimit in the configuration of the kubelets',
    },
    {
      feature: 'user',
      reason:
        'all pods have the same user id, because a pod cannot choose a free one; the users of pods are apart by their namespaces of files and processes',
    },
  ];
  if (runtimeClass !== undefined) {
    features.push(`runtime-class=${runtimeClass}`);
    missing.push({
      feature: 'private-memory',
      reason:
        'commands of a run may be able to read the memory of its agent: gVisor cannot start a program that its user cannot read, so with a RuntimeClass the agent is not protected by this',
    });
  } else {
    features.push('private-memory');
    missing.push({
      feature: 'kernel',
      reason:
        'pods share the kernel of their node: not a boundary against exploits of it; RUNYARD_KUBERNETES_RUNTIME_CLASS with gVisor or Kata gives them one of their own',
    });
  }
  return { backend: 'kubernetes', features, missing };
}
