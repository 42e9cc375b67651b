import type { Repository } from '@runyard/contract/environments';
import { notUsable } from '../../platform/fault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import type { CheckDefaults, DefaultFault } from '../access/identities/identities.ts';
import { imageProblem } from '../environments/image.ts';
import { findNamedEnvironment } from '../environments/named.ts';
import { noChoices } from '../models/choices.ts';
import type { Models } from '../models/models.ts';
import { readModelChoices } from '../models/team-models.ts';
import { findMissingSecrets } from '../stored-secrets/missing-secrets.ts';
import { parseSkillSpec } from './spec.ts';

/** An agent is a guest of no environment, so its environment must belong to the team. */
const agent = { kind: 'service_account', uid: '' } as const;

/** Returns the check of an identity's references to other domains. */
export const checkIdentityDefaults =
  (models: Models): CheckDefaults =>
  async (tx, teamId, { base_model, environment_id, skills, secrets }) => {
    const faults: DefaultFault[] = [];
    const add = (path: string, message: string) => void faults.push({ path, message });
    // An outage ends; a disabled model stays disabled until an administrator enables it.
    const choices = { ...noChoices, disabledIds: (await readModelChoices(tx, teamId)).disabledIds };
    const model = base_model === null ? null : models.resolve(base_model, choices);
    if (model?.ok === false) add('base_model', model.message);
    const { fault, repositories } = await checkEnvironment(tx, teamId, environment_id);
    if (fault !== null) faults.push(fault);
    for (const skill of skills) {
      const spec = parseSkillSpec(skill, repositories);
      if (typeof spec === 'string') add('skills', `${skill}: ${spec}`);
    }
    for (const name of await findMissingSecrets(tx, teamId, secrets))
      add('secrets', `the team has no secret ${name}. Set it with PUT /secrets/${name} and the scope team`);
    if (new Set(secrets).size < secrets.length) add('secrets', 'must name each secret once');
    return faults;
  };

/** Returns why the environment of an identity cannot be used, and its repositories. */
async function checkEnvironment(
  tx: Queryable,
  teamId: string,
  environmentId: string | null,
): Promise<{ readonly fault: DefaultFault | null; readonly repositories: readonly Repository[] }> {
  if (environmentId === null) return { fault: null, repositories: [] };
  const environment = await findNamedEnvironment(tx, { teamId, creator: agent }, environmentId);
  const path = 'environment_id';
  if (environment.kind === 'not_usable') {
    const { fault } = notUsable(path, 'environment', 'GET /agent/environments');
    return { fault: { ...fault, isForbidden: true }, repositories: [] };
  }
  const message = imageProblem(environment.config);
  const repositories = environment.config.github_repos ?? [];
  return { fault: message === null ? null : { path, message }, repositories };
}
