/** Checks that the runs of a definition could be created now, by the person who applies it. */

import { pathOf } from '@runyard/contract/factories/files/layout';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { DefinedAgent, FactoryDefinition } from '@runyard/definitions/definition';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { checkRunRequest } from '../../runs/runs/submit/request.ts';
import { maxConfigLength } from '../../runs/runs/submit/request-config.ts';
import type { Author } from '../../team/access/audit/record.ts';
import type { Models } from '../../team/models/models.ts';
import { configOfRun, type Execution } from './configs.ts';
import type { FaultList } from './fault-list.ts';

export interface CheckDeps {
  readonly models: Models;
  readonly vault: Vault;
}

/** A part of a definition file that may set members of a run's configuration. `base`: path of this part in the file. */
interface Place {
  readonly file: string;
  readonly base: readonly string[];
  readonly members: Execution;
}

interface ConfigsToCheck {
  readonly definition: FactoryDefinition;
  readonly factoryUid: string;
  /** True: secrets are not looked up. */
  readonly withoutSecrets?: boolean;
}

/** Adds a fault for each environment, model, harness, secret and MCP server that the files name but runs cannot use. */
export async function checkConfigs(
  { models, vault }: CheckDeps,
  tx: Queryable,
  by: Author,
  { definition, factoryUid, withoutSecrets = false }: ConfigsToCheck,
  faults: FaultList,
): Promise<void> {
  const { factory, agents, automations } = definition;
  const ofFactory: Place[] = [
    { file: 'factory.yaml', base: ['agentDefaults'], members: factory.agentDefaults },
    { file: 'factory.yaml', base: [], members: factory },
  ];
  // Check equal configurations only once. Most runs of a factory differ only in the prompt of their agent, and the check needs only
  // the length of the prompt.
  const known = new Map<string, readonly Problem[]>();
  const reported = new Set<string>();
  const check = async ({ secrets, ...others }: AmbientAgentConfig, own: readonly Place[]) => {
    const config = withoutSecrets || secrets === undefined ? others : { ...others, secrets };
    const isLarge = JSON.stringify(config).length > maxConfigLength;
    const key = JSON.stringify({ ...config, base_prompt: isLarge });
    const problems = known.get(key) ?? (await problemsOf({ models, vault }, tx, by, config));
    known.set(key, problems);
    for (const { path, message } of problems) {
      const { file, at } = placeOf(path, [...own, ...ofFactory]);
      const place = `${file} ${at.join('.')} ${message}`;
      if (!reported.has(place)) faults.add(file, at, message);
      reported.add(place);
    }
  };
  for (const agent of agents) await check(configOfRun(definition, factoryUid, agent), [ofAgent(agent)]);
  for (const automation of automations) {
    const agent = agentOf(definition, automation.agent);
    if (!agent) continue;
    const own = { file: pathOf.automation(automation.name), base: [], members: automation };
    await check(configOfRun(definition, factoryUid, agent, automation), [own, ofAgent(agent)]);
  }
}

const ofAgent = (agent: DefinedAgent): Place => ({ file: pathOf.agent(agent.name), base: [], members: agent });

/** Returns the agent of this name, or the foreman. */
export const agentOf = ({ agents }: FactoryDefinition, name: string | undefined): DefinedAgent | undefined =>
  agents.find((agent) => (name === undefined ? agent.agentType === 'FOREMAN' : agent.name === name));

interface Problem {
  /** Path of a member in the configuration of a run, without the prefix `config.`. */
  readonly path: string;
  readonly message: string;
}

async function problemsOf(deps: CheckDeps, db: Queryable, by: Author, config: AmbientAgentConfig): Promise<Problem[]> {
  const checked = await checkRunRequest({ db, ...deps }, by, { prompt: 'Check.', config }, 'API', {
    keepsLacking: true,
  });
  switch (checked.kind) {
    case 'ok':
    // This is not a fault of the files: the runs get the missing rights when a person accepts the definition.
    case 'withheld':
    // This is not a fault of the files: the outage of the model will end.
    case 'model_outage':
      return [];
    case 'invalid':
      return checked.faults.map(({ path, message }) => ({ path: inConfig(path), message }));
    case 'forbidden':
      return [
        { path: inConfig(checked.fault?.path ?? 'config.secrets'), message: checked.fault?.message ?? checked.detail },
      ];
    case 'not_available':
      return [{ path: 'model_id', message: checked.detail }];
  }
}

const inConfig = (path: string): string => path.replace(/^config\.?/, '');

type ExecutionKey = keyof Execution;

/** For each member of a run's configuration: the keys in definition files that set this member. */
const keysOf: Readonly<Record<string, readonly ExecutionKey[]>> = {
  model_id: ['model', 'harness'],
  harness: ['harness', 'model'],
  environment_id: ['environment', 'environmentId'],
  runner_config: ['runner'],
  secrets: ['secrets'],
  skills: ['skills'],
  skill_spec: ['skills'],
  mcp_servers: ['mcpServers'],
  output_schema: ['outputSchema'],
  checks: ['checks'],
  check_attempts: ['checkAttempts'],
  worker_host: ['workerHost'],
};

/**
 * Returns the place in the files that sets the member `path` of a run's configuration. Searches `places` in their order, which begins
 * with the most specific file.
 */
function placeOf(path: string, places: readonly Place[]): { readonly file: string; readonly at: readonly string[] } {
  const keys = keysOf[path.split('.')[0] ?? ''] ?? [];
  for (const { file, base, members } of places)
    for (const key of keys) {
      if (members[key] === undefined || members[key] === null) continue;
      const isModelOfHarness = key === 'harness' && path === 'model_id';
      if (isModelOfHarness && !members.harness?.model) continue;
      return { file, at: [...base, key, ...(isModelOfHarness ? ['model'] : [])] };
    }
  return { file: places[0]?.file ?? 'factory.yaml', at: [] };
}
