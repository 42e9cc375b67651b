/** Finds, creates, changes and deletes the environments that definitions name. */
import type { EnvironmentConfig } from '@runyard/contract/environments/environments';
import { commandsOfServices } from '@runyard/contract/environments/services';
import { pathOf } from '@runyard/contract/factories/files/layout';
import { maxEnvironments } from '@runyard/contract/limits';
import type { FactoryDefinition } from '@runyard/definitions/definition';
import { compareMembers } from '@runyard/definitions/plan-changes';
import { environmentsNamedBy, type UidsByName } from '@runyard/definitions/with-uids';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import type { Author } from '../../team/access/audit/record.ts';
import type { PolicyText } from '../../team/content-policy/content-policy.ts';
import {
  createEnvironment,
  deleteEnvironment,
  lockEnvironment,
  updateEnvironment,
} from '../../team/environments/environments.ts';
import { findEnvironmentsByName } from '../../team/environments/named.ts';
import { checkEnvironmentSecrets } from '../../team/stored-secrets/environment-secrets.ts';
import { namesOfDeleted } from './apply-webhooks.ts';
import type { FaultList } from './fault-list.ts';
import { uidOf } from './state.ts';
import type { DefinedUids } from './stored.ts';

type Uids = UidsByName['environments'];

/** The schema of an environment file refuses repositories without owner and name, so the configuration has the stored form. */
export const configOfEnvironment = ({ config }: FactoryDefinition['environments'][number]): EnvironmentConfig =>
  config as EnvironmentConfig;

/** Returns the commands of the environments of a definition, for the content policy. */
export const commandsOf = ({ environments }: FactoryDefinition): PolicyText[] =>
  environments
    .map(configOfEnvironment)
    .flatMap((config) => [...(config.setup_commands ?? []), ...commandsOfServices(config)])
    .map((text) => ({ kind: 'setup_command', text }));

/** Returns whether an apply may create, change or delete environments. */
export const definesEnvironments = ({ environments }: FactoryDefinition, uids: DefinedUids): boolean =>
  environments.length + Object.keys(uids.environments ?? {}).length > 0;

/**
 * Returns the UIDs of the environments that a definition names without a file for them. Adds a fault for each name that the team has no
 * environment for, or several.
 */
export async function findTeamEnvironments(
  db: Queryable,
  teamId: string,
  definition: FactoryDefinition,
  faults: FaultList,
): Promise<Uids> {
  const defined = new Set(definition.environments.map(({ name }) => name));
  const names = environmentsNamedBy(definition).filter((name) => !defined.has(name));
  const found = await findEnvironmentsByName(db, teamId, names);
  const missing = new Map<string, string>();
  const uids = names.flatMap((name): [string, string][] => {
    const [uid, ...others] = found.get(name) ?? [];
    if (uid !== undefined && others.length === 0) return [[name, uid]];
    missing.set(
      name,
      uid === undefined
        ? `there is no file ${pathOf.environment(name)}, and the team has no environment ${name}`
        : `the team has ${others.length + 1} environments ${name}; use environmentId, or add the file ${pathOf.environment(name)}`,
    );
    return [];
  });
  const report = (
    file: string,
    base: readonly string[],
    { environment }: { environment?: string | null | undefined },
  ) => {
    const message = environment ? missing.get(environment) : undefined;
    if (message !== undefined) faults.add(file, [...base, 'environment'], `environment: ${message}`);
  };
  report('factory.yaml', ['agentDefaults'], definition.factory.agentDefaults);
  for (const agent of definition.agents) report(pathOf.agent(agent.name), [], agent);
  for (const automation of definition.automations) report(pathOf.automation(automation.name), [], automation);
  return Object.fromEntries(uids);
}

interface EnvironmentsToApply {
  readonly teamId: string;
  readonly definition: FactoryDefinition;
  /** UIDs of the environments of the previous definition, by name. */
  readonly uids: Uids;
}

/** Needed only in lists of environments. */
const noRuns = async () => new Map();

/**
 * Creates and changes environments, and returns their UIDs by name. The caller has locked the parts of the factory. If this adds faults,
 * the caller rolls the transaction back.
 */
export async function applyEnvironments(
  vault: Vault,
  tx: Queryable,
  by: Author,
  { teamId, definition, uids }: EnvironmentsToApply,
  faults: FaultList,
): Promise<Uids> {
  const applied: [string, string][] = [];
  for (const environment of definition.environments) {
    const { name } = environment;
    const config = configOfEnvironment(environment);
    const uid = uidOf(uids, name);
    const before = uid === '' ? null : await lockEnvironment(tx, teamId, uid);
    const refused = await checkEnvironmentSecrets(tx, vault, by, config.secrets ?? [], before?.secrets ?? []);
    if (refused) {
      const message =
        refused.kind === 'invalid' ? refused.faults.map((fault) => fault.message).join('; ') : refused.detail;
      faults.add(pathOf.environment(name), ['secrets'], `secrets: ${message.replace(/^config\.secrets: /, '')}`);
    } else if (before) {
      if (compareMembers(before, config).length > 0) await updateEnvironment(tx, by, uid, config);
      applied.push([name, uid]);
    } else {
      const made = await createEnvironment(tx, by, config, noRuns);
      if (made === 'too_many')
        faults.add(pathOf.environment(name), [], `the team would have more than ${maxEnvironments} environments`);
      else applied.push([name, made.uid]);
    }
  }
  return Object.fromEntries(applied);
}

/** Deletes the environments that the previous definition had and the new definition does not have. */
export async function deleteEnvironments(
  tx: Queryable,
  by: Author,
  { definition, uids }: Pick<EnvironmentsToApply, 'definition' | 'uids'>,
): Promise<void> {
  for (const name of namesOfDeleted(uids, definition.environments)) await deleteEnvironment(tx, by, uidOf(uids, name));
}
