import { z } from 'zod';
import { FactoryAgentType } from '../factories/factories.ts';
import { maxMcpServersOfRun, maxSecretsOfRun, maxSkillsOfRun } from '../limits.ts';
import { WaitingAfterChange } from '../runs/acceptances.ts';
import { CheckAttempts, RunChecks } from '../runs/checks.ts';
import { HarnessConfig, MCPServerConfig } from '../runs/config.ts';
import { HarnessAuthSecrets, InferenceProviders } from '../runs/published-config.ts';
import { OutputSchema } from '../runs/results.ts';
import { SecretPhase } from '../secrets/secrets.ts';
import { NonBlank, Text, Timestamp } from '../wire/primitives.ts';

const Name = NonBlank.max(200).describe('Name for people, at most 200 characters');
const Description = Text.max(2000)
  .nullable()
  .optional()
  .describe('The purpose of the agent, at most 2,000 characters; empty: none');
const BaseModel = Text.max(200)
  .nullable()
  .optional()
  .describe(
    "Model of the agent's runs without a model: an id of GET /agent/models; empty: the agent has no default model",
  );
const EnvironmentId = Text.nullable()
  .optional()
  .describe("Environment of the agent's runs that name no environment; empty: the agent has no default environment");
const Skills = z
  .array(NonBlank.max(500))
  .max(maxSkillsOfRun)
  .describe(`Skills of its runs without skills, as owner/repo:skill-name, at most ${maxSkillsOfRun}`);
const Secret = z
  .object({
    name: NonBlank.describe('Name of the secret, and of the environment variable in the sandbox'),
    phase: SecretPhase.optional(),
  })
  .meta({ id: 'AgentIdentitySecret', description: 'A secret of the team that runs as an identity get' });
const Secrets = z
  .array(Secret)
  .max(maxSecretsOfRun)
  .describe(`Secrets of the team that its runs get in addition to their own, at most ${maxSecretsOfRun}`);
const Prompt = Text.max(65_536)
  .nullable()
  .optional()
  .describe(
    'Instructions before every prompt of its runs without a base_prompt, at most 65,536 characters; empty: none',
  );
const Harness = HarnessConfig.nullable()
  .optional()
  .describe('Harness of its runs without a harness; an empty object: the built-in harness');
const BaseHarness = Text.max(100)
  .nullable()
  .optional()
  .describe('Older form of `harness.type`; if both are present, they must be equal; empty: the built-in harness');
const McpServers = z
  .record(Text, MCPServerConfig)
  .describe(
    `MCP servers of its runs, by name, at most ${maxMcpServersOfRun}; a server of the run replaces a server with the same name. Headers and variables are shown, so secrets belong into a stored server`,
  );
const ResultSchema = OutputSchema.nullable()
  .optional()
  .describe('Schema of the results of its runs without an output_schema; an empty object: none');
const Checks = RunChecks.nullable().optional().describe('Checks of its runs without checks; an empty list: none');
const Attempts = CheckAttempts.nullable().optional().describe('`check_attempts` of its runs without one');
const WorkerHost = Text.max(200)
  .nullable()
  .optional()
  .describe('Self-hosted worker of its runs without a worker; `warp`: any worker of the service; empty: none');
const CredentialStrategy = z
  .enum(['EXECUTOR', ''], {
    error: 'must be EXECUTOR or empty: runs of an identity use the credentials of their executor',
  })
  .nullable()
  .optional()
  .describe('Whose credentials its runs use: EXECUTOR, as without this member; empty: not set');
const AgentCredentialStrategy = z
  .enum(['CREATOR', 'EXECUTOR'])
  .meta({ id: 'AgentCredentialStrategy', description: 'Whose credentials the runs of an agent use' });
const DefaultRunnerUid = Text.max(200)
  .nullable()
  .optional()
  .describe(
    'Where its runs are executed, unless they name an environment or a worker themselves: the UID of an environment, or the name of a pool of self-hosted workers; empty: none',
  );
const OnBehalfOfEnabled = z
  .boolean()
  .describe(
    'True: its keys may create runs for a person with `on_behalf_of`. Only owners can turn it on, which ends the keys of the identity',
  );

const AgentAutoMemory = z
  .object({ enabled: z.literal(false).describe('Whether the agent has its own memory store: always false') })
  .meta({ id: 'AgentAutoMemory', description: 'The memory store of an agent; this service has no memory stores' });

const AgentMemory = z
  .object({
    attached_stores: z
      .array(z.string())
      .max(0)
      .describe('Memory stores of the team. This service has none: always empty'),
    auto_memory: AgentAutoMemory,
  })
  .meta({ id: 'AgentMemory', description: 'Memory stores of an agent; this service has no memory stores' });

const wantedMembers = {
  credential_strategy: CredentialStrategy,
  default_runner_uid: DefaultRunnerUid,
  inference_providers: InferenceProviders.nullable()
    .optional()
    .describe('Refused unless empty or disabled: runs use the models of this service'),
  harness_auth_secrets: HarnessAuthSecrets.nullable()
    .optional()
    .describe('Refused if the harness of the run would use one: harnesses use their models through this service'),
  memory: AgentMemory.partial()
    .meta({ id: 'RequestedAgentMemory', description: 'Memory stores; refused unless empty' })
    .nullable()
    .optional()
    .describe('Refused unless empty: this service has no memory stores'),
};

/** An agent of a team. Runs and agent keys can act as this agent. */
export const AgentIdentity = z
  .object({
    uid: z.string().describe('UID of the identity, 22 characters of [A-Za-z0-9]'),
    name: z.string().describe('Name for people'),
    description: z.string().optional().describe('The purpose of the agent'),
    available: z
      .boolean()
      .describe(
        'True: runs as it can be created. False: its environment, its model, a skill or a secret cannot be used any more',
      ),
    created_at: Timestamp.describe('When it was created, RFC 3339 in UTC'),
    updated_at: Timestamp.describe('When it was last changed, RFC 3339 in UTC'),
    base_model: z.string().optional().describe('Model of its runs without a model'),
    environment_id: z.string().optional().describe('Environment of its runs without an environment'),
    skills: z.array(z.string()).describe('Skills of its runs without skills'),
    secrets: z.array(Secret).describe('Secrets of the team that its runs get in addition to their own'),
    prompt: z.string().optional().describe('Instructions before every prompt of its runs'),
    harness: HarnessConfig.optional(),
    base_harness: z.string().optional().describe('The same as `harness.type`'),
    mcp_servers: z.record(z.string(), MCPServerConfig).optional().describe('MCP servers of its runs, by name'),
    output_schema: OutputSchema.optional().describe('Schema of the results of its runs without an output_schema'),
    checks: RunChecks.optional().describe('Checks of its runs without checks'),
    check_attempts: CheckAttempts.optional().describe('`check_attempts` of its runs without one'),
    worker_host: z.string().optional().describe('Self-hosted worker of its runs without a worker'),
    factory_uid: z
      .string()
      .optional()
      .describe(
        'UID of the factory whose definition has this agent. It is changed only there, and no key acts as this agent',
      ),
    agent_type: FactoryAgentType.optional(),
    on_behalf_of_enabled: OnBehalfOfEnabled,
    memory: AgentMemory,
    waiting: WaitingAfterChange.optional(),
    credential_strategy: AgentCredentialStrategy.optional().describe('Whose credentials its runs use; absent: not set'),
    default_runner_uid: z
      .string()
      .describe('Environment or pool of self-hosted workers of its runs without one; empty: none'),
  })
  .meta({ id: 'AgentIdentity', description: 'An agent of a team that runs and agent keys can act as' });
export type AgentIdentity = z.infer<typeof AgentIdentity>;

export const ListAgentIdentitiesQuery = z.object({
  factory_uid: Text.max(200)
    .optional()
    .describe('Only the agents in the definition of this factory, by name. Absent: all identities of the team'),
});

export const ListAgentIdentitiesResponse = z
  .object({
    agents: z.array(AgentIdentity).describe('Agent identities of the team, oldest first, or the agents of a factory'),
  })
  .meta({ id: 'ListAgentIdentitiesResponse', description: 'Agent identities of a team' });

export const CreateAgentIdentityRequest = z
  .object({
    name: Name,
    description: Description,
    base_model: BaseModel,
    environment_id: EnvironmentId,
    skills: Skills.default([]),
    secrets: Secrets.default([]),
    prompt: Prompt,
    harness: Harness,
    base_harness: BaseHarness,
    mcp_servers: McpServers.default({}),
    output_schema: ResultSchema,
    checks: Checks,
    check_attempts: Attempts,
    worker_host: WorkerHost,
    ...wantedMembers,
    on_behalf_of_enabled: OnBehalfOfEnabled.default(false),
    factory_uid: z
      .literal('', {
        error: 'must be empty: the agents of a factory are in its definition, which PUT /factory/{uid}/definition sets',
      })
      .nullable()
      .optional()
      .describe('Empty: the agents of a factory are in its definition'),
  })
  .meta({ id: 'CreateAgentIdentityRequest', description: 'An agent identity to create' });
export type CreateAgentIdentityRequest = z.infer<typeof CreateAgentIdentityRequest>;

/** Returns the schema of a member that may be missing or null. Both mean the same. */
const orNull = <T extends z.ZodType>(schema: T) =>
  schema
    .nullable()
    .optional()
    .describe(schema.description ?? '');

export const UpdateAgentIdentityRequest = z
  .object({
    name: Name.optional(),
    description: Description,
    base_model: BaseModel,
    environment_id: EnvironmentId,
    skills: orNull(Skills),
    secrets: orNull(Secrets),
    prompt: Prompt,
    harness: Harness,
    base_harness: BaseHarness,
    mcp_servers: orNull(McpServers),
    output_schema: ResultSchema,
    checks: Checks,
    check_attempts: Attempts,
    worker_host: WorkerHost,
    ...wantedMembers,
    on_behalf_of_enabled: orNull(OnBehalfOfEnabled),
  })
  .meta({
    id: 'UpdateAgentIdentityRequest',
    description:
      'What to change. Members that are absent or null keep their values; an empty text removes description, base_model, environment_id, prompt, base_harness, worker_host, credential_strategy or default_runner_uid; an empty object removes harness, mcp_servers or output_schema; an empty list removes checks',
  });
export type UpdateAgentIdentityRequest = z.infer<typeof UpdateAgentIdentityRequest>;
