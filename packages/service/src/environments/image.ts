import type { EnvironmentConfig } from '@runyard/contract/environments';

/** Returns why no run can be set up in an environment with a container image; null: it has none. */
export function imageProblem({ docker_image }: Pick<EnvironmentConfig, 'docker_image'>): string | null {
  const image = docker_image?.trim() ?? '';
  if (image === '') return null;
  const shown = image.length > 200 ? `${image.slice(0, 200)}…` : image;
  return `the environment has the docker_image ${shown}, and no worker can run container images yet. Replace its configuration by one without docker_image (setup_commands can install what is needed), or name another environment`;
}
