import { readImageName, registryName } from '../runs/image-names.ts';
import { absolutePath, itemsOf, matching, type ReadText, type Setting, whole } from './setting.ts';

const imageName: ReadText<string> = (text) => {
  const read = readImageName(text);
  return read.ok ? { value: text } : { problem: read.problem };
};

/** Registries as they are in the names of images, comma-separated. */
export const registries: ReadText<string[]> = (text) => {
  const items = itemsOf(text);
  const wrong = items.find((item) => !registryName.test(item));
  return wrong === undefined
    ? { value: items.map((item) => item.toLowerCase()) }
    : { problem: `must be registries like ghcr.io or registry.example.com:5000; ${JSON.stringify(wrong)} is not` };
};

/** Settings of sandboxes that are containers: with `RUNYARD_SANDBOX=docker`, and on workers of other projects. */
export const containerSettings = {
  RUNYARD_DOCKER_HOST: {
    read: matching(/^unix:\/\/\//, 'must be a Unix socket, such as unix:///var/run/docker.sock'),
    default: 'unix:///var/run/docker.sock',
    description: 'Container engine of the worker’s machine, for `RUNYARD_SANDBOX=docker`.',
    usedBy: ['worker', 'cli'],
  },
  RUNYARD_DOCKER_IMAGE: {
    read: matching(/^.{1,500}$/, 'must be the name of an image, at most 500 characters'),
    default: 'buildpack-deps:bookworm-scm',
    description:
      'Image for the containers of runs whose environment names no image. It needs a shell, and also git if the environment has repositories.',
    usedBy: ['worker'],
  },
  RUNYARD_DOCKER_RUNTIME: {
    read: matching(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/, 'must be the name of a runtime'),
    description:
      'Runtime of the engine that starts containers, such as `runsc` (gVisor) or `kata`. Default: the runtime that the engine chooses, usually runc.',
    usedBy: ['worker', 'cli'],
  },
  RUNYARD_DOCKER_REGISTRIES: {
    read: registries,
    default: 'docker.io,ghcr.io,quay.io,gcr.io,public.ecr.aws,mcr.microsoft.com,registry.gitlab.com',
    description:
      'Registries, comma-separated, whose images runs may use. The engine connects to them with the network of the worker’s machine. All teams of the worker can use every image from these registries that the engine has.',
    usedBy: ['worker'],
  },
  RUNYARD_DOCKER_CONFIG: {
    read: absolutePath,
    description:
      'File with credentials for image registries in the format of Docker’s `config.json` (`auths`), read for each pull. Every team of the worker may then use the private images that they open. Programs for credentials (`credsStore`, `credHelpers`) are not started.',
    usedBy: ['worker'],
  },
  RUNYARD_DOCKER_IMAGE_MB: {
    read: whole(16, 10485760),
    default: '10240',
    description: 'Largest size of an image, packed and unpacked.',
    usedBy: ['worker'],
  },
  RUNYARD_DOCKER_PULLED_MB: {
    read: whole(0, 104857600),
    default: '51200',
    description:
      'Size of the images together that the worker has pulled. Above this size, the worker removes the images that were not used for the longest time. It never removes an image in use, or an image that the engine had before. 0: it removes no image.',
    usedBy: ['worker', 'cli'],
  },
  RUNYARD_SIDECAR_IMAGE: {
    read: imageName,
    description:
      'Image with the agent for workers of `oz-agent-worker` in docker or kubernetes mode, in a registry that they can pull from; `bin/build-sidecar-image` makes the image. If it is set, such workers execute runs whose environment has an image.',
    usedBy: ['service'],
  },
} as const satisfies Record<string, Setting<unknown>>;
