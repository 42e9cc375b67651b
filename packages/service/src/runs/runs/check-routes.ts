/** Routes with which an agent runs checks in fresh sandboxes. They authenticate with the run token. */

import type { FreshCheck } from '@runyard/contract/agent/fresh-checks';
import { routes } from '@runyard/contract/routes';
import { isSettled } from '@runyard/contract/runs/run-states';
import { invalid, notFound, type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import { type FreshCheckOutcome, readFreshCheckOutcome } from '../executions/fresh-checks/fresh-checks.ts';
import { AttemptOver, stoppingAttempt, supersededAttempt } from '../executions/run-tokens/attempt.ts';
import { type RunSession, serveRun } from '../executions/run-tokens/sessions.ts';
import type { SubmitDeps } from './submit/prepare.ts';
import { startFreshCheck } from './submit/start-fresh-check.ts';
import { refusedSubmission } from './submit/translate.ts';
import { awaitChildren, cancelChild } from './tree/children.ts';

/** Serves the start, the wait and the cancel of checks in fresh sandboxes. */
export function checkRoutes(deps: SubmitDeps): readonly ServedRoute[] {
  const { executionDeps } = deps;
  const read = async (session: RunSession, runId: string): Promise<FreshCheck | Refusal> => {
    const outcome = isUuid(runId) ? await readFreshCheckOutcome(executionDeps.db, runId, session.runId) : undefined;
    return outcome === undefined ? notFound('check') : toAnswer(outcome);
  };

  return [
    serveRun(routes.startFreshCheck, async ({ session, body }) => {
      try {
        const outcome = await startFreshCheck(deps, session, body);
        switch (outcome.kind) {
          case 'started':
            return { check_run_id: outcome.runId };
          case 'no_such_check':
            return invalid([{ path: 'name', message: 'the run has no check in a fresh sandbox with this name' }]);
          case 'impossible':
            return refuse('conflict', { detail: outcome.detail });
          case 'gone':
            return notFound('run');
          default:
            return refusedSubmission(outcome);
        }
      } catch (error) {
        if (error instanceof AttemptOver) return error.why === 'stopping' ? stoppingAttempt() : supersededAttempt();
        throw error;
      }
    }),

    serveRun(routes.getFreshCheck, async ({ session, params, query, waiting }) => {
      const before = await read(session, params.childRunId);
      if (!('state' in before) || before.state !== 'running') return before;
      const wait = { runIds: [params.childRunId], until: 'all', waitMs: query.wait_ms, signal: waiting() } as const;
      await awaitChildren(executionDeps, session, wait);
      return await read(session, params.childRunId);
    }),

    serveRun(routes.cancelFreshCheck, async ({ session, params, waiting }) => {
      const before = await read(session, params.childRunId);
      if (!('state' in before)) return before;
      if ((await cancelChild(executionDeps, session, params.childRunId, waiting())) === 'pending')
        return refuse('conflict', { detail: 'The run of the check is still PENDING; try again in some seconds.' });
      return {};
    }),
  ];
}

/** Returns the state of a check from the state of its run. A run that ended in another way than SUCCEEDED has not seen the check pass. */
function toAnswer({ state, status_message: message, finished }: FreshCheckOutcome): FreshCheck {
  if (!isSettled(state)) return { state: 'running' };
  const { exit_code, output_tail, error = message ?? `its run ended as ${state}` } = finished ?? {};
  const ended = {
    ...(exit_code === undefined ? {} : { exit_code }),
    ...(output_tail === undefined ? {} : { output_tail }),
  };
  return state === 'SUCCEEDED' ? { ...ended, state: 'passed' } : { ...ended, state: 'failed', error };
}
