import { registries } from './containers.ts';
import { absolutePath, httpUrl, matching, type ReadText, type Setting, whole } from './setting.ts';

const dnsName = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/;
const imageName = matching(/^.{1,500}$/, 'must be the name of an image, at most 500 characters');

const pods = /^[a-z0-9-]{1,63}\/[A-Za-z0-9./_-]+=[A-Za-z0-9._-]+(?:,[A-Za-z0-9./_-]+=[A-Za-z0-9._-]+)*:(\d{1,5})$/;

const podsWithPort: ReadText<string> = (text) =>
  Number(pods.exec(text)?.[1] ?? 'none') <= 65_535
    ? { value: text }
    : { problem: 'must be NAMESPACE/LABEL=VALUE[,LABEL=VALUE…]:PORT, such as runyard/app=runyard:7676' };

/** Settings of sandboxes that are pods (`RUNYARD_SANDBOX=kubernetes`). */
export const kubernetesSettings = {
  RUNYARD_KUBERNETES_CONFIG: {
    read: absolutePath,
    description:
      "Kubeconfig file with the cluster and the credentials of the worker. Default: the file in `KUBECONFIG`, the user's file, or the service account of the worker’s pod.",
    usedBy: ['worker', 'cli'],
  },
  RUNYARD_KUBERNETES_NAMESPACE: {
    read: matching(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, 'must be the name of a namespace'),
    default: 'runyard',
    description: 'Namespace of the pods, which must exist.',
    usedBy: ['worker', 'cli'],
  },
  RUNYARD_KUBERNETES_AGENT_IMAGE: {
    read: imageName,
    description:
      'Image with the agent and its Node in `/agent`; each pod copies them before its own container starts. Needed for `RUNYARD_SANDBOX=kubernetes`.',
    usedBy: ['worker', 'cli'],
  },
  RUNYARD_KUBERNETES_IMAGE: {
    read: imageName,
    default: 'buildpack-deps:bookworm-scm',
    description:
      'Image for the pods of runs whose environment names no image. It needs a shell, and also git if the environment has repositories.',
    usedBy: ['worker', 'cli'],
  },
  RUNYARD_KUBERNETES_REGISTRIES: {
    read: registries,
    default: 'docker.io,ghcr.io,quay.io,gcr.io,public.ecr.aws,mcr.microsoft.com,registry.gitlab.com',
    description:
      'Registries, comma-separated, whose images runs may use. Nodes pull them with the credentials of the pod template and of the nodes.',
    usedBy: ['worker'],
  },
  RUNYARD_KUBERNETES_SERVICE_URL: {
    read: httpUrl,
    description:
      'URL at which pods reach the service. Default: `RUNYARD_BASE_URL`. By default, its host must not be a loopback address of the worker’s machine.',
    usedBy: ['worker', 'cli'],
  },
  RUNYARD_KUBERNETES_SERVICE_PODS: {
    read: podsWithPort,
    description:
      'Pods of the service, for the network policy, where it runs in the same cluster: `namespace/label=value:port` with the port of its container. Default: the policy opens the addresses of the service’s host.',
    usedBy: ['worker', 'cli'],
  },
  RUNYARD_KUBERNETES_POD_TEMPLATE: {
    read: absolutePath,
    description:
      'File (YAML or JSON) with labels, annotations, node selection, tolerations, pull secrets and processor requests for the pods. docs/isolation.md lists its members.',
    usedBy: ['worker', 'cli'],
  },
  RUNYARD_KUBERNETES_RUNTIME_CLASS: {
    read: matching(dnsName, 'must be the name of a RuntimeClass'),
    description:
      "RuntimeClass of the pods. gVisor or Kata, for example, gives each pod a separate kernel. Default: the cluster's runtime, usually runc.",
    usedBy: ['worker', 'cli'],
  },
  RUNYARD_KUBERNETES_START_SECONDS: {
    read: whole(1, 86400),
    default: '300',
    description:
      'Time for the cluster to schedule a pod, pull its images and start it. After this time, the run fails with the reason.',
    usedBy: ['worker'],
  },
  RUNYARD_KUBERNETES_DEADLINE_HOURS: {
    read: whole(1, 8760),
    default: '24',
    description:
      'Time after which the cluster ends a pod in any case, even if no worker is left (`activeDeadlineSeconds`).',
    usedBy: ['worker'],
  },
} as const satisfies Record<string, Setting<unknown>>;
