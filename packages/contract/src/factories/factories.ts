import { z } from 'zod';
import { Repository } from '../environments/repositories.ts';
import { AmbientAgentConfig, MCPServerConfig } from '../runs/config.ts';
import { SecretReferences } from '../secrets/secrets.ts';
import { NonBlank, Text, Timestamp } from '../wire/primitives.ts';
import { PageInfo } from '../wire/profiles.ts';

const maxRepositories = 50;

const described = {
  name: NonBlank.max(100).describe('Name for people, at most 100 characters'),
  description: Text.max(2_000).optional().describe('Purpose of the factory'),
  alias: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,49}$/, { error: 'must be 1 to 50 characters of [A-Za-z0-9_-]' })
    .optional()
    .describe('Short name, unique in the team'),
  repositories: z
    .array(Repository)
    .max(maxRepositories)
    .optional()
    .describe(`Repositories that its agents work on, at most ${maxRepositories}`),
  agent_defaults: AmbientAgentConfig.optional().describe('Configuration that its runs begin from'),
};

export const FactoryAgentType = z
  .enum(['CUSTOM', 'FOREMAN', 'TRIAGE', 'SPEC', 'IMPLEMENT', 'REVIEW', 'VERIFY'])
  .meta({ id: 'FactoryAgentType', description: 'Role of an agent. The FOREMAN gets the work that names no agent' });

/** An agent to which a factory assigns runs. */
export const FactoryAgent = z
  .object({
    name: z.string().describe('Name of the agent in the factory'),
    agent_type: FactoryAgentType,
    description: z.string().optional().describe('Task of the agent'),
    prompt: z.string().describe('Instructions in front of the prompt of every run'),
    config: AmbientAgentConfig.describe('Members that override the members of `agent_defaults`'),
  })
  .meta({ id: 'FactoryAgent', description: 'An agent that runs of a factory are given to' });
export type FactoryAgent = z.infer<typeof FactoryAgent>;

const FactoryAgentDefaults = AmbientAgentConfig.extend({
  default_runner_uid: Text.describe(
    'Stored and returned, but without effect on this service, which uses `runner_config`; empty: none',
  ),
  mcp_servers: z.record(Text, MCPServerConfig).describe('MCP servers that its runs may use, by name'),
  secrets: SecretReferences.describe('Names of the secrets that the sandboxes of its runs get'),
  worker_host: Text.describe('Self-hosted worker that executes its runs; empty: any worker of the service'),
}).meta({
  id: 'FactoryAgentDefaults',
  description: 'Configuration that the runs of a factory begin from. Unknown members are stored and returned',
});

const FactoryCodeForge = z.enum(['GITHUB', 'GITLAB', 'NONE']).meta({
  id: 'FactoryCodeForge',
  description:
    'API of the code host with the repositories; a host that is neither of the two is used as GitHub. NONE: the factory has no repositories',
});

const CredentialStrategy = z.enum(['CREATOR', 'EXECUTOR']).meta({
  id: 'CredentialStrategy',
  description:
    'As the definition declares it; default EXECUTOR: a run uses the credentials of its executor. On this service, CREATOR has the same effect',
});

/** Integrations that a definition can declare. */
export const integrationTypes = ['jira', 'linear', 'microsoft-teams', 'slack'] as const;

const ThreadReplies = z
  .object({
    auto_respond_to_thread_replies: z.boolean().optional().describe('Whether replies in a thread start work'),
  })
  .meta({ id: 'FactoryThreadReplies', description: 'Settings of an integration, without effect on this service' });
const FactoryIntegration = z
  .object({
    type: z.enum(integrationTypes).meta({ id: 'FactoryIntegrationType', description: 'Kind of an integration' }),
    slack: ThreadReplies.optional().describe('Settings, without effect on this service'),
    'microsoft-teams': ThreadReplies.optional().describe('Settings, without effect on this service'),
  })
  .meta({ id: 'FactoryIntegration', description: 'An integration that the definition declares' });

const FactoryScoring = z
  .object({})
  .meta({ id: 'FactoryScoring', description: 'Always empty: scorers of runs are not available on this service' });

/** A group of webhooks and automations. */
export const Factory = z
  .object({
    ...described,
    repositories: z.array(Repository).describe('Repositories that its agents work on'),
    agent_defaults: FactoryAgentDefaults,
    // Definition files allow longer texts.
    name: z.string().describe('Name for people'),
    alias: z.string().nullable().describe('Short name, unique in the team; null: none'),
    description: z.string().nullable().describe('Purpose of the factory; null: none'),
    agents: z
      .array(FactoryAgent)
      .optional()
      .describe('Agents of the factory, by name, one of them the FOREMAN. Not in lists of factories'),
    uid: z.string().describe('UID of the factory, 22 characters'),
    team_uid: z.string().describe('UID of the team that owns the factory'),
    default_environment: z.string().nullable().describe('The same as `agent_defaults.environment_id`; null: none'),
    default_model: z.string().nullable().describe('The same as `agent_defaults.model_id`; null: none'),
    code_forge: FactoryCodeForge,
    code_forges: z.array(FactoryCodeForge).describe('Its `code_forge`, alone'),
    credential_strategy: CredentialStrategy,
    integrations: z
      .array(FactoryIntegration)
      .nullable()
      .describe('Integrations that the definition declares, without effect on this service; null: it declares none'),
    scoring: FactoryScoring,
    scorer_defaults: FactoryScoring,
    created_at: Timestamp.describe('When it was created, RFC 3339 in UTC'),
    updated_at: Timestamp.describe('When it last changed, RFC 3339 in UTC'),
  })
  .meta({ id: 'Factory', description: 'A group of webhooks, and of the automations that they start' });
export type Factory = z.infer<typeof Factory>;

export const CreateFactoryRequest = z
  .object(described)
  .meta({ id: 'CreateFactoryRequest', description: 'A factory to create' });
export type CreateFactoryRequest = z.infer<typeof CreateFactoryRequest>;

export const ListFactoriesQuery = z.object({
  team_uid: Text.max(200)
    .optional()
    .describe('Only factories of this team. The team of the key is the only one with a list that is not empty'),
  search: Text.max(200).optional().describe('Part of the name or the alias, in any case'),
  limit: z.int().min(1).max(100).default(50).describe('Factories of a page, 1 to 100'),
  cursor: Text.max(8192).optional().meta({ description: 'next_cursor of the previous page' }),
});
export type ListFactoriesQuery = z.infer<typeof ListFactoriesQuery>;

export const ListFactoriesResponse = z
  .object({
    factories: z.array(Factory).describe('Factories of the team, by name'),
    page_info: PageInfo,
  })
  .meta({ id: 'ListFactoriesResponse', description: 'A page of factories' });
export type ListFactoriesResponse = z.infer<typeof ListFactoriesResponse>;
