/** Makes configurations of runs from the members of definition files that define how a run is executed. */

import { builtinHarness } from '@runyard/contract/agent/harness-presets/builtin';
import { type CreateFactoryRequest, type FactoryAgent, integrationTypes } from '@runyard/contract/factories/factories';
import { type FileChecks, toRunChecks } from '@runyard/contract/factories/files/checks';
import { nameOfSecret, type SecretEntry } from '@runyard/contract/factories/files/execution';
import { type FileRetry, toRunRetry } from '@runyard/contract/factories/files/retry';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type {
  DefinedAgent,
  DefinedAutomation,
  DefinedRunner,
  FactoryDefinition,
} from '@runyard/definitions/definition';
import type { DeclaredMembers } from '../factories/factories.ts';
import { configOfFactoryRun } from '../factories/run-config.ts';
import { skillsOfAgent } from './skills.ts';

/** The members that define how a run is executed. */
export interface Execution {
  readonly model?: string | null | undefined;
  readonly harness?:
    | {
        readonly type?: string | null | undefined;
        readonly model?: string | null | undefined;
        readonly reasoningLevel?: string | null | undefined;
      }
    | undefined;
  readonly environment?: string | null | undefined;
  readonly environmentId?: string | null | undefined;
  readonly runner?: string | null | undefined;
  readonly secrets?: readonly SecretEntry[] | undefined;
  readonly skills?: readonly string[] | undefined;
  readonly mcpServers?: Readonly<Record<string, { readonly warpId: string }>> | undefined;
  readonly outputSchema?: AmbientAgentConfig['output_schema'];
  readonly checks?: FileChecks | undefined;
  readonly checkAttempts?: number | undefined;
  readonly retry?: FileRetry | undefined;
  readonly workerHost?: string | null | undefined;
}

/**
 * Returns the configuration that the members of a file set. If the file sets secrets or MCP servers, adds those that the factory gives
 * to all its agents.
 */
export function toConfig(
  {
    model,
    harness,
    environmentId,
    runner,
    secrets,
    skills,
    mcpServers,
    outputSchema,
    checks,
    checkAttempts,
    retry,
    workerHost,
  }: Execution,
  { factory: ofAll, runners }: Pick<FactoryDefinition, 'factory' | 'runners'>,
): AmbientAgentConfig {
  const defined = runner ? runners.find(({ name }) => name === runner) : undefined;
  const modelId = model ?? harness?.model;
  const servers = mcpServers && Object.entries({ ...ofAll.mcpServers, ...mcpServers });
  return {
    ...(modelId ? { model_id: modelId } : {}),
    // A file with `model` means the built-in harness with this model.
    ...(model ? { harness: { type: builtinHarness } } : {}),
    ...(harness ? { harness: toHarness(harness) } : {}),
    ...(environmentId ? { environment_id: environmentId } : {}),
    ...(defined ? toRunner(defined) : {}),
    ...(secrets ? { secrets: toReferences([...(ofAll.secrets ?? []), ...secrets]) } : {}),
    ...(skills ? { skills: [...skills] } : {}),
    ...(servers
      ? { mcp_servers: Object.fromEntries(servers.map(([name, { warpId }]) => [name, { warp_id: warpId }])) }
      : {}),
    ...(outputSchema === undefined ? {} : { output_schema: outputSchema }),
    ...(checks === undefined ? {} : { checks: toRunChecks(checks) }),
    ...(checkAttempts === undefined ? {} : { check_attempts: checkAttempts }),
    ...(retry === undefined ? {} : { retry: toRunRetry(retry) }),
    ...(workerHost === undefined ? {} : { worker_host: workerHost ?? '' }),
  };
}

/** Returns a reference to each secret. Of two entries with one name, the later entry counts. */
const toReferences = (secrets: readonly SecretEntry[]) => [
  ...new Map(
    secrets.map((secret) => [nameOfSecret(secret), typeof secret === 'string' ? { name: secret } : { ...secret }]),
  ).values(),
];

const toHarness = ({ type, reasoningLevel }: NonNullable<Execution['harness']>) => ({
  ...(type ? { type } : {}),
  ...(reasoningLevel === undefined ? {} : { reasoning_level: reasoningLevel ?? '' }),
});

const toRunner = ({
  setupCommands,
  instanceShape,
  platform,
}: DefinedRunner): Pick<AmbientAgentConfig, 'runner_config'> =>
  platform.linux
    ? {
        runner_config: {
          docker_image: platform.linux.dockerImage,
          ...(platform.arch === 'aarch64' ? { arch: platform.arch } : {}),
          ...(setupCommands ? { setup_commands: setupCommands } : {}),
          ...(instanceShape
            ? { instance_shape: { vcpus: instanceShape.vcpus, memory_gb: instanceShape.memoryGb } }
            : {}),
        },
      }
    : { runner_config: { os: 'macos' } };

/** Returns the members of the factory that its definition sets. */
export function toFactoryMembers(definition: FactoryDefinition): CreateFactoryRequest {
  const { factory } = definition;
  const { agentDefaults, secrets, mcpServers } = factory;
  const execution = {
    ...agentDefaults,
    ...(secrets ? { secrets: agentDefaults.secrets ?? [] } : {}),
    ...(mcpServers ? { mcpServers: agentDefaults.mcpServers ?? {} } : {}),
  };
  return {
    name: factory.name,
    ...(factory.description === undefined ? {} : { description: factory.description }),
    ...(factory.alias === undefined ? {} : { alias: factory.alias }),
    repositories: factory.repositories.map(({ owner, name }) => ({ owner, repo: name })),
    agent_defaults: toConfig(execution, definition),
  };
}

/** Returns the members of a factory that only its definition sets. */
export const declaredMembersOf = ({ factory }: FactoryDefinition): DeclaredMembers => ({
  integrations: integrationsOf(factory.integrations),
  credential_strategy: factory.credentialStrategy ?? null,
});

/** Returns the declared integrations in the form of the API. Entries of another form are left out, because they have no effect anyway. */
function integrationsOf(declared: unknown): DeclaredMembers['integrations'] {
  if (!Array.isArray(declared)) return null;
  return declared.flatMap((entry: unknown) => {
    const { type, autoRespondToThreadReplies: responds } = Object(entry) as Readonly<Record<string, unknown>>;
    const known = integrationTypes.find((each) => each === type);
    if (!known) return [];
    const hasThreads = known === 'slack' || known === 'microsoft-teams';
    const settings =
      hasThreads && typeof responds === 'boolean' ? { [known]: { auto_respond_to_thread_replies: responds } } : {};
    return [{ type: known, ...settings }];
  });
}

/**
 * Returns an agent in the form in which it is stored. The list of skills begins with skills from repositories: those of the agent, or
 * those of the agent defaults if the agent names none. The skills that the definition contains follow.
 */
export function toFactoryAgent(agent: DefinedAgent, definition: FactoryDefinition, factoryUid: string): FactoryAgent {
  const { factory } = definition;
  const defined = skillsOfAgent(definition, factoryUid, agent.name);
  const skills = [...(agent.skills ?? factory.agentDefaults.skills ?? []), ...defined];
  return {
    name: agent.name,
    agent_type: agent.agentType,
    ...(agent.description === undefined ? {} : { description: agent.description }),
    prompt: agent.prompt,
    config: toConfig(defined.length === 0 ? agent : { ...agent, skills }, definition),
  };
}

/**
 * Returns the configuration for the runs of an agent. If `automation` is set, returns the configuration for the runs of this
 * automation, which `agent` executes.
 */
export function configOfRun(
  definition: FactoryDefinition,
  factoryUid: string,
  agent: DefinedAgent,
  automation?: DefinedAutomation,
): AmbientAgentConfig {
  return configOfFactoryRun({
    defaults: toFactoryMembers(definition).agent_defaults ?? {},
    agent: toFactoryAgent(agent, definition, factoryUid),
    ...(automation ? { overrides: toConfig(automation, definition) } : {}),
  });
}
