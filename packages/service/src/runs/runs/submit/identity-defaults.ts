import type { Repository } from '@runyard/contract/environments/repositories';
import { workerName } from '@runyard/contract/workers/worker-name';
import { type Fault, notUsable } from '../../../platform/fault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { CheckDefaults, DefaultFault } from '../../../team/access/identities/defaults.ts';
import { imageProblem } from '../../../team/environments/image.ts';
import { findNamedEnvironment } from '../../../team/environments/named.ts';
import { noChoices } from '../../../team/models/choices.ts';
import type { Models } from '../../../team/models/models.ts';
import { readModelChoices } from '../../../team/models/team-models.ts';
import { parseSkillSpec } from '../../../team/skills/spec.ts';
import { findMissingSecrets } from '../../../team/stored-secrets/stored-secrets.ts';
import { faultOfOutputSchema } from '../../results/check-output-schema.ts';
import { checkMcpServers, workerHostOf } from './request-config.ts';
import { checkHarness } from './request-harness.ts';
import { withRunner } from './request-published.ts';

/** An agent identity cannot use an environment of another team as a guest, so its environment must belong to the team. */
const agent = { kind: 'service_account', uid: '' } as const;

/** Maximum size of the harness, the MCP servers and the prompt of an identity together, in UTF-16 units of their JSON. */
const maxDefaultsLength = 256 * 1024;

/** Returns the function that checks the defaults of an agent identity. It makes the same checks as for a run of this identity. */
export const checkIdentityDefaults =
  (models: Models): CheckDefaults =>
  async (tx, teamId, { base_model, environment_id, skills, secrets, config }) => {
    const faults: DefaultFault[] = [];
    const add = (path: string, message: string) => void faults.push({ path, message });
    // Accept a model whose provider has an outage, because an outage ends by itself. Refuse a disabled model, because it stays disabled
    // until an administrator enables it.
    const choices = { ...noChoices, disabledIds: (await readModelChoices(tx, teamId)).disabledIds };
    const modelOf = (path: string, name: string | null | undefined) => {
      const model = name ? models.resolve(name, choices) : null;
      if (model?.ok === false) add(path, model.message);
    };
    modelOf('base_model', base_model);
    modelOf('harness.model_id', config.harness?.model_id);
    if (base_model !== null && config.harness?.model_id)
      add('harness.model_id', 'base_model names the model already; keep one of the two');
    const ofRunner: Fault[] = [];
    const placed = await withRunner(
      tx,
      teamId,
      { ...config, ...(environment_id === null ? {} : { environment_id }) },
      ofRunner,
    );
    faults.push(...ofRunner.map(({ message }) => ({ path: 'default_runner_uid', message })));
    const member = environment_id === null ? 'default_runner_uid' : 'environment_id';
    const { fault, repositories } = await checkEnvironment(tx, teamId, placed.environment_id ?? null, member);
    if (fault !== null) faults.push(fault);
    for (const skill of skills) {
      const spec = parseSkillSpec(skill, repositories);
      if (typeof spec === 'string') add('skills', `${skill}: ${spec}`);
    }
    for (const name of await findMissingSecrets(tx, teamId, secrets))
      add('secrets', `the team has no secret ${name}. Set it with PUT /secrets/${name} and the scope team`);
    if (new Set(secrets).size < secrets.length) add('secrets', 'must name each secret once');
    const harness = checkHarness(config);
    if (!harness.ok) add(ofIdentity(harness.fault).path, harness.fault.message);
    if (!workerName.test(workerHostOf(config) ?? 'hosted'))
      add('worker_host', 'no worker can have this name: it must be 1 to 63 characters of [A-Za-z0-9._-]');
    const schema = await faultOfOutputSchema(teamId, config);
    if (schema) faults.push(ofIdentity(schema));
    const servers = await checkMcpServers(tx, teamId, config.mcp_servers ?? {});
    if ('kind' in servers) faults.push({ ...ofIdentity(servers.fault), isForbidden: true });
    else faults.push(...servers.faults.map(ofIdentity));
    if (JSON.stringify(config).length > maxDefaultsLength)
      add('mcp_servers', `prompt, harness and MCP servers are at most ${maxDefaultsLength / 1024} KB together`);
    return faults;
  };

/** Changes the path in a fault of a configuration to the path of the same member in an identity. */
const ofIdentity = (fault: Fault): Fault => ({ ...fault, path: fault.path.replace(/^config\./, '') });

/** Returns the reason why the environment of an identity cannot be used, and the repositories of the environment. */
async function checkEnvironment(
  tx: Queryable,
  teamId: string,
  environmentId: string | null,
  path: string,
): Promise<{ readonly fault: DefaultFault | null; readonly repositories: readonly Repository[] }> {
  if (environmentId === null) return { fault: null, repositories: [] };
  const environment = await findNamedEnvironment(tx, { teamId, creator: agent }, environmentId);
  if (environment.kind === 'not_usable') {
    const { fault } = notUsable(path, 'environment', 'GET /agent/environments');
    return { fault: { ...fault, isForbidden: true }, repositories: [] };
  }
  const message = imageProblem(environment.config);
  const repositories = environment.config.github_repos ?? [];
  return { fault: message === null ? null : { path, message }, repositories };
}
