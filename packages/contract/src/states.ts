import { z } from 'zod';

/** States of a run; which may follow which is in `runs/transitions.ts` of the service. */
export const RunState = z
  .enum(['QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED'])
  .meta({ id: 'RunState' });
export type RunState = z.infer<typeof RunState>;

/** A run in one of these states changes only by a follow-up. */
export const terminalStates = ['SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED'] as const satisfies readonly RunState[];

/** True where nothing but a follow-up can change the run any more. */
export function isTerminal(state: RunState): boolean {
  return (terminalStates as readonly RunState[]).includes(state);
}

/** How a run was created. All but WEBHOOK are the public service's. */
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
  ])
  .meta({ id: 'RunSourceType' });
export type RunSourceType = z.infer<typeof RunSourceType>;

/** Where a run executes. */
export const RunExecutionLocation = z.enum(['LOCAL', 'REMOTE']).meta({ id: 'RunExecutionLocation' });
export type RunExecutionLocation = z.infer<typeof RunExecutionLocation>;

/** The five artifact types of the interface. */
export const ArtifactType = z
  .enum(['PLAN', 'PULL_REQUEST', 'SCREENSHOT', 'FILE', 'EXTERNAL_REFERENCE'])
  .meta({ id: 'ArtifactType' });
export type ArtifactType = z.infer<typeof ArtifactType>;
