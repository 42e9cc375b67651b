import { z } from 'zod';
import { maxSecretsOfRun, maxSkillsOfRun } from './limits.ts';
import { NonBlank, Text, Timestamp } from './primitives.ts';

const Name = NonBlank.max(200).describe('Name for people, at most 200 characters');
const Description = Text.max(2000)
  .nullable()
  .optional()
  .describe('What the agent is for, at most 2,000 characters; empty: it has none');
const BaseModel = Text.max(200)
  .nullable()
  .optional()
  .describe('Model of its runs that name none; it must be one of GET /agent/models; empty: it has none');
const EnvironmentId = Text.nullable().optional().describe('Environment of its runs that name none; empty: it has none');
const Skills = z
  .array(NonBlank.max(500))
  .max(maxSkillsOfRun)
  .describe(`Skills of its runs that name none, as owner/repo:skill-name, at most ${maxSkillsOfRun}`);
const Secret = z
  .object({ name: NonBlank.describe('Name of the secret, and of the environment variable in the sandbox') })
  .meta({ id: 'AgentIdentitySecret', description: 'A secret of the team that runs as an identity get' });
const Secrets = z
  .array(Secret)
  .max(maxSecretsOfRun)
  .describe(`Secrets of the team that its runs get in addition to their own, at most ${maxSecretsOfRun}`);
const OnBehalfOfEnabled = z
  .boolean()
  .describe(
    'True: its keys may create runs for a person with `on_behalf_of`. Only owners turn it on, which ends the keys of the identity',
  );

const AgentAutoMemory = z
  .object({ enabled: z.literal(false).describe('Whether the agent has a memory store of its own: always false') })
  .meta({ id: 'AgentAutoMemory', description: 'The memory store of an agent, of which this service has none' });

const AgentMemory = z
  .object({
    attached_stores: z
      .array(z.string())
      .max(0)
      .describe('Memory stores of the team. This service has none: always empty'),
    auto_memory: AgentAutoMemory,
  })
  .meta({ id: 'AgentMemory', description: 'Memory stores of an agent, of which this service has none' });

/** An agent of a team that runs and agent keys can act as. */
export const AgentIdentity = z
  .object({
    uid: z.string().describe('UID of the identity, 22 characters of [A-Za-z0-9]'),
    name: z.string().describe('Name for people'),
    description: z.string().optional().describe('What the agent is for'),
    available: z
      .boolean()
      .describe(
        'True: runs as it can be created. False: its environment, its model, a skill or a secret cannot be used any more',
      ),
    created_at: Timestamp.describe('When it was created, RFC 3339 in UTC'),
    updated_at: Timestamp.describe('When it was last changed, RFC 3339 in UTC'),
    base_model: z.string().optional().describe('Model of its runs that name none'),
    environment_id: z.string().optional().describe('Environment of its runs that name none'),
    skills: z.array(z.string()).describe('Skills of its runs that name none'),
    secrets: z.array(Secret).describe('Secrets of the team that its runs get in addition to their own'),
    on_behalf_of_enabled: OnBehalfOfEnabled,
    memory: AgentMemory,
    default_runner_uid: z
      .literal('')
      .describe('Runner of its runs. This service has no runners, so it is always empty'),
  })
  .meta({ id: 'AgentIdentity', description: 'An agent of a team that runs and agent keys can act as' });
export type AgentIdentity = z.infer<typeof AgentIdentity>;

export const ListAgentIdentitiesResponse = z
  .object({ agents: z.array(AgentIdentity).describe('Agent identities of the team, oldest first') })
  .meta({ id: 'ListAgentIdentitiesResponse', description: 'Agent identities of a team' });

export const CreateAgentIdentityRequest = z
  .object({
    name: Name,
    description: Description,
    base_model: BaseModel,
    environment_id: EnvironmentId,
    skills: Skills.default([]),
    secrets: Secrets.default([]),
    on_behalf_of_enabled: OnBehalfOfEnabled.default(false),
  })
  .meta({ id: 'CreateAgentIdentityRequest', description: 'An agent identity to create' });
export type CreateAgentIdentityRequest = z.infer<typeof CreateAgentIdentityRequest>;

/** A member that may be left out or null, with the same meaning. */
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
    on_behalf_of_enabled: orNull(OnBehalfOfEnabled),
  })
  .meta({
    id: 'UpdateAgentIdentityRequest',
    description:
      'What to change. Members that are left out or null stay; an empty text removes description, base_model or environment_id',
  });
export type UpdateAgentIdentityRequest = z.infer<typeof UpdateAgentIdentityRequest>;
