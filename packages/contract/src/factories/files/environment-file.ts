import { NamedEnvironmentConfig } from '../../environments/environments.ts';
import { NonBlank } from '../../wire/primitives.ts';
import { strictObject } from './strict-object.ts';

const { name: _name, providers: _providers, ...members } = NamedEnvironmentConfig.shape;

/** `environments/<name>.yaml`: the configuration of an environment, with the names of the API. */
export const EnvironmentFile = strictObject({
  name: NonBlank.max(200).optional().describe('Name of the environment in the team. Default: the name of the file'),
  ...members,
}).superRefine(({ system, docker_image: image, github_repos: repositories = [] }, context) => {
  const fault = (path: (string | number)[], message: string) => context.addIssue({ code: 'custom', path, message });
  if (system !== undefined && image?.trim())
    fault(['system'], 'not together with docker_image: it has the system of the image');
  for (const [index, { url }] of repositories.entries())
    if (url !== undefined) fault(['github_repos', index, 'url'], 'needs owner and repo instead, in a definition');
});
