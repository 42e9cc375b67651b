import type { EnvironmentConfig } from '@runyard/contract/environments/environments';
import { readImageName } from '@runyard/contract/runs/image-names';

/**
 * Returns the reason why no run can use the container image of an environment; null if runs can use it, or if the environment has no image.
 */
export function imageProblem({ docker_image }: Pick<EnvironmentConfig, 'docker_image'>): string | null {
  const image = docker_image?.trim() ?? '';
  if (image === '') return null;
  const read = readImageName(image);
  return read.ok ? null : `the docker_image of the environment: ${read.problem}`;
}

/** SQL: the container image in the configuration of an environment; null if it has none. `config` is SQL. */
export const imageOf = (config: string): string => `nullif(btrim(${config}->>'docker_image'), '')`;
