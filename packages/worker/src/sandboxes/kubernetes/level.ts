import { imagesFeature, type SandboxLevel, serviceImagesFeature } from '@runyard/contract/workers/worker-protocol';
import type { PodGround } from './job.ts';

/**
 * Returns how well pods are isolated if the cluster does everything that the Job asks for. The worker cannot check this, because it
 * cannot look into the nodes.
 */
export function levelOf({ runtimeClass }: Pick<PodGround, 'runtimeClass'>): SandboxLevel {
  const features = [
    imagesFeature,
    serviceImagesFeature,
    'no-new-privileges',
    'seccomp',
    'memory-limit',
    'disk-limit',
    'read-only-root',
  ];
  const missing: SandboxLevel['missing'] = [
    {
      feature: 'no-network',
      reason:
        "a NetworkPolicy lets pods reach only the service and the name servers; whether it has an effect depends on the cluster's network plugin, which the worker cannot see",
    },
    {
      feature: 'process-limit',
      reason: 'pods have no limit on processes of their own: set podPidsLimit in the configuration of the kubelets',
    },
    {
      feature: 'user',
      reason:
        'all pods have the same user id, because a pod cannot choose a free one; namespaces of files and processes separate the users of pods',
    },
  ];
  if (runtimeClass !== undefined) {
    features.push(`runtime-class=${runtimeClass}`);
    missing.push({
      feature: 'private-memory',
      reason:
        "the worker cannot see the runtime of the RuntimeClass: on a Linux kernel, such as that of Kata, commands of a run cannot read the memory of its agent; gVisor cannot start an unreadable program, so there only gVisor's own kernel protects the agent",
    });
  } else {
    features.push('private-memory');
    missing.push({
      feature: 'kernel',
      reason:
        'pods share the kernel of their node, which does not protect against exploits of the kernel; RUNYARD_KUBERNETES_RUNTIME_CLASS with gVisor or Kata gives each pod a separate kernel',
    });
  }
  return { backend: 'kubernetes', features, missing };
}
