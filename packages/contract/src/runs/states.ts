import { z } from 'zod';
import { runStates } from './run-states.ts';

/** States of a run; the service's `runs/executions/transitions` defines which state may follow which. */
export const RunState = z.enum(runStates).meta({
  id: 'RunState',
  description:
    'QUEUED: waits for a free slot. PENDING: a worker has it. CLAIMED: its sandbox is being set up. INPROGRESS: the agent is at work. BLOCKED: it waits for an answer. SUCCEEDED, FAILED (the agent or its task), ERROR (the platform), CANCELLED: it has ended, until a follow-up',
});
export type RunState = z.infer<typeof RunState>;

/** How a run was created. All values except WEBHOOK are values of the public service; some of them never occur in this service. */
export const RunSourceType = z
  .enum([
    'LINEAR',
    'API',
    'SLACK',
    'LOCAL',
    'SCHEDULED_AGENT',
    'WEB_APP',
    'GITHUB_ACTION',
    'CLOUD_MODE',
    'CLI',
    'JIRA',
    'SELF_IMPROVEMENT',
    'GITHUB_WEBHOOK',
    'GITLAB_WEBHOOK',
    'AUTOFIX',
    'RUN_SCORER',
    'ORCHESTRATION',
    'WEBHOOK',
    'MCP',
    'TEAMS',
    'AZURE_DEVOPS_WEBHOOK',
    'BENCHMARK_TRIAL',
    'CREATE_BENCHMARK_TASK',
    'CUSTOM_WEBHOOK',
  ])
  .meta({ id: 'RunSourceType', description: 'How a run was created' });
export type RunSourceType = z.infer<typeof RunSourceType>;

const ofPrograms = ['API', 'CLI', 'WEB_APP', 'CLOUD_MODE'] as const satisfies readonly RunSourceType[];

/**
 * Sources that a request may name in the header X-Oz-Api-Source. They depend on whether the key of the request belongs to a person or
 * an agent. The service itself sets the other sources. A person's request cannot name GITHUB_ACTION, because a run with this source
 * cannot be cancelled.
 */
export const claimableSources = {
  user: ofPrograms,
  service_account: [...ofPrograms, 'GITHUB_ACTION', 'LINEAR', 'SLACK', 'TEAMS', 'JIRA'],
} as const satisfies Record<string, readonly RunSourceType[]>;

/** The header in which a request that creates a run names the run's source. */
export const sourceHeader = {
  'X-Oz-Api-Source': `\`source\` of the run: ${ofPrograms.join(', ')}; with an agent key also ${claimableSources.service_account.slice(ofPrograms.length).join(', ')}. Other values are ignored. Runs with the source GITHUB_ACTION cannot be cancelled over the API`,
};

/** Combined state of a run and the runs below it. */
export const RunTaskStatus = z.enum(['running', 'failed', 'blocked', 'cancelled', 'complete']).meta({
  id: 'RunTaskStatus',
  description:
    '`running`: the run, or a run below it, is QUEUED, PENDING, CLAIMED or INPROGRESS. The others are states of the run itself; `failed`: FAILED or ERROR; `complete`: SUCCEEDED',
});
export type RunTaskStatus = z.infer<typeof RunTaskStatus>;

/** The kind of machine on which a run executes. */
export const RunExecutionLocation = z
  .enum(['LOCAL', 'REMOTE'])
  .meta({ id: 'RunExecutionLocation', description: 'Where a run executes. REMOTE: on a worker of the service' });
export type RunExecutionLocation = z.infer<typeof RunExecutionLocation>;

/** The five artifact types of the API. */
export const ArtifactType = z
  .enum(['PLAN', 'PULL_REQUEST', 'SCREENSHOT', 'FILE', 'EXTERNAL_REFERENCE'])
  .meta({ id: 'ArtifactType', description: 'Kinds of artifacts' });
export type ArtifactType = z.infer<typeof ArtifactType>;
