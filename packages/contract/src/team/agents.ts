/**
 * The list of agents that people can choose for a run. Each of them is a skill: a `SKILL.md` file of a repository, in the Agent Skills
 * format.
 */
import { z } from 'zod';
import { RepositoryName } from '../environments/repositories.ts';
import { Timestamp } from '../wire/primitives.ts';

/** `owner/repo`. */
export const RepositorySpec = z
  .string()
  .regex(/^[A-Za-z0-9_.-]{1,100}\/[A-Za-z0-9_.-]{1,100}$/, { error: 'must be owner/repo', abort: true })
  .refine((text) => text.split('/').every((name) => RepositoryName.safeParse(name).success), {
    error: 'must be owner/repo',
  });

export const AgentSortField = z
  .enum(['name', 'last_run'])
  .meta({ id: 'AgentSortField', description: 'Order of the list of agents' });
export type AgentSortField = z.infer<typeof AgentSortField>;

const AgentSource = z
  .object({
    owner: z.string().describe('Owner of the repository'),
    name: z.string().describe('Name of the repository'),
    skill_path: z.string().describe('Path of the SKILL.md file in the repository'),
    worker_host: z.string().optional().describe('Self-hosted worker that has the skill; absent: a repository has it'),
  })
  .meta({ id: 'AgentSource', description: 'Place of a skill' });

const AgentEnvironment = z
  .object({
    uid: z.string().describe('Id of the environment'),
    name: z.string().describe('Name of the environment; empty: it has no name'),
  })
  .meta({ id: 'AgentEnvironment', description: 'An environment that has the repository of a skill' });

export const AgentVariant = z
  .object({
    id: z.string().describe('owner/repo:path/to/SKILL.md, which a run takes as skill_spec'),
    description: z.string().describe('Purpose of the skill; empty for a malformed one'),
    base_prompt: z.string().describe('Text of the skill; empty for a malformed one'),
    source: AgentSource,
    environments: z.array(AgentEnvironment).describe('Environments of the caller that have the repository'),
    error: z.string().optional().describe('Why the skill cannot be used, with its file; absent: it can'),
    last_run_timestamp: Timestamp.optional().describe('When the last run of the team with this skill was created'),
  })
  .meta({ id: 'AgentVariant', description: 'A skill in one repository' });
export type AgentVariant = z.infer<typeof AgentVariant>;

export const AgentItem = z
  .object({
    name: z.string().describe('Name of the skill; of a repository that cannot be read: owner/repo'),
    variants: z.array(AgentVariant).describe('The skills of this name'),
  })
  .meta({ id: 'AgentItem', description: 'All skills of one name' });
export type AgentItem = z.infer<typeof AgentItem>;

export const ListAgentsResponse = z
  .object({ agents: z.array(AgentItem).describe('Agents in the order that was asked for') })
  .meta({ id: 'ListAgentsResponse', description: 'Skills that runs can be started with' });
export type ListAgentsResponse = z.infer<typeof ListAgentsResponse>;
