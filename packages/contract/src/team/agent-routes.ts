import { z } from 'zod';
import { maxListedRepositories } from '../limits.ts';
import { teamReads } from '../wire/access.ts';
import type { Route } from '../wire/route.ts';
import { AgentSortField, ListAgentsResponse, RepositorySpec } from './agents.ts';

export const agentRoutes = {
  listAgents: {
    method: 'GET',
    path: '/agent',
    tag: 'agents',
    summary: 'List agents (skills)',
    description: `Skills are the \`SKILL.md\` files below \`skills/\`, \`.agents/skills/\`, \`.claude/skills/\`, \`.warp/skills/\` and \`.codex/skills/\` of a repository, in the Agent Skills format (https://agentskills.io/specification). At most ${maxListedRepositories} repositories are read for one answer.`,
    allow: teamReads,
    query: z.object({
      repo: RepositorySpec.optional().meta({
        description:
          'owner/repo; absent: the repositories of all environments that the caller may use. Viewers name only such repositories',
      }),
      refresh: z.boolean().default(false).meta({
        description: 'true: the repositories are read again instead of taken from the cache',
      }),
      sort_by: AgentSortField.default('name').meta({
        description: 'last_run: agents with the newest last run first, agents without a run last',
      }),
      include_malformed_skills: z.boolean().default(false).meta({
        description: 'true: includes skills and repositories that cannot be used; their variants have an error',
      }),
    }),
    answer: { status: 200, description: 'The agents, at most 5 minutes old', schema: ListAgentsResponse },
    errors: { 400: 'A wrong value, or a repository that cannot be read' },
  },
} as const satisfies Record<string, Route>;
