/** Checks in fresh sandboxes: the agent of a run starts them, and waits for them. */
import { z } from 'zod';
import { maxTrustedPaths } from '../limits.ts';
import { BaseCommit } from '../runs/agent-events.ts';
import { EmptyRequest, EmptyResponse } from '../wire/bodies.ts';
import { TurnNumber } from '../wire/primitives.ts';
import type { Route } from '../wire/route.ts';

/** Member of the task of an agent that runs one check in a fresh sandbox. */
export const TaskFreshCheck = z
  .object({
    trusted_paths: z
      .array(z.string())
      .max(maxTrustedPaths)
      .describe('Patterns of files that stay as in the base commit'),
    base_commits: z.array(BaseCommit).describe('The commit that each clone must have'),
  })
  .meta({
    id: 'TaskFreshCheck',
    description:
      'Present if the run only runs a check: the check of the task runs on the base commits with the stored changes',
  });

export const StartFreshCheck = z
  .object({
    turn: TurnNumber.describe('Number of the turn in the execution: 1, 2, …'),
    attempt: z.int().min(1).max(100).describe('Number of the round of checks in the turn: 1, 2, …'),
    name: z.string().max(100).describe('Name of the check'),
  })
  .meta({ id: 'StartFreshCheck', description: 'A check to run in a fresh sandbox' });
export type StartFreshCheck = z.infer<typeof StartFreshCheck>;

const StartFreshCheckResponse = z
  .object({ check_run_id: z.string().describe('Id of the run that runs the check') })
  .meta({ id: 'StartFreshCheckResponse', description: 'The run that runs a check' });
export type StartFreshCheckResponse = z.infer<typeof StartFreshCheckResponse>;

const FreshCheckState = z
  .enum(['running', 'passed', 'failed'])
  .meta({ id: 'FreshCheckState', description: 'State of a check in a fresh sandbox' });

export const FreshCheck = z
  .object({
    state: FreshCheckState,
    exit_code: z.int().optional().describe('Exit code of its command; absent: it has not ended'),
    output_tail: z.string().optional().describe('End of its output, at most 8 KB'),
    error: z.string().optional().describe('Why it failed; absent: it runs or passed'),
  })
  .meta({ id: 'FreshCheck', description: 'A check in a fresh sandbox' });
export type FreshCheck = z.infer<typeof FreshCheck>;

const common = { tag: 'harness', allow: { run: 'at_work' } } as const;
const params = z.object({ childRunId: z.string().meta({ description: 'Id of the run of a check' }) });
const noCheck = 'The caller has started no such check';

export const freshCheckRoutes = {
  startFreshCheck: {
    ...common,
    method: 'POST',
    path: '/harness-support/fresh-checks',
    summary: 'Run a check in a fresh sandbox',
    description:
      'The agent has sent the snapshot of the turn before. The check runs as a run below the caller, without secrets and without a model. The same turn, attempt and name start one run.',
    body: StartFreshCheck,
    answer: { status: 200, description: 'Started', schema: StartFreshCheckResponse },
    errors: {
      400: 'The run has no such check',
      409: 'The check cannot run: the base commits or the snapshot of the turn are unknown, no connected worker has fresh sandboxes, or the check has no attempt left in this turn. Or the execution is stopping',
    },
  },
  getFreshCheck: {
    ...common,
    method: 'GET',
    path: '/harness-support/fresh-checks/{childRunId}',
    summary: 'Read a check in a fresh sandbox, or wait for it',
    params,
    query: z.object({
      wait_ms: z.int().min(0).max(60_000).default(0).describe('Longest wait in milliseconds; 0: answers at once'),
    }),
    answer: { status: 200, description: 'The check, as it is after the wait', schema: FreshCheck },
    errors: { 404: noCheck },
  },
  cancelFreshCheck: {
    ...common,
    method: 'POST',
    endsSomething: true,
    path: '/harness-support/fresh-checks/{childRunId}/cancel',
    summary: 'Cancel a check in a fresh sandbox',
    params,
    body: EmptyRequest,
    answer: { status: 200, description: 'It ends', schema: EmptyResponse },
    errors: { 404: noCheck, 409: 'Its run is still PENDING; try again' },
  },
} as const satisfies Record<string, Route>;
