/** Routes with which an agent starts, lists, awaits and cancels child runs. They authenticate with the run token. */

import { routes } from '@runyard/contract/routes';
import type { ChildRun } from '@runyard/contract/runs/child-runs';
import { notFound, type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { type RunSession, serveRun, serveRunRepeatable } from '../executions/run-tokens/sessions.ts';
import type { SubmitDeps } from './submit/prepare.ts';
import { startChild } from './submit/start-child.ts';
import { refusedSubmission } from './submit/translate.ts';
import { awaitChildren, cancelChild, readChildren, readOwnArtifacts } from './tree/children.ts';

/** Serves the start, list, await and cancel routes. The contract declares that only a run that may start other runs can call them. */
export function childRunRoutes(deps: SubmitDeps): readonly ServedRoute[] {
  const { executionDeps } = deps;
  const { db } = executionDeps;

  const readChild = async (session: RunSession, runId: string): Promise<ChildRun | Refusal> =>
    (await readChildren(db, session.runId, [runId]))[0] ?? notFound('run');

  return [
    serveRunRepeatable(routes.startChildRun, async ({ session, body, once }) => {
      const outcome = await startChild(deps, session, body, once);
      switch (outcome.kind) {
        case 'submitted': {
          const { run_id, state } = outcome.response;
          return { run_id, state };
        }
        case 'gone':
          return notFound('run');
        default:
          return refusedSubmission(outcome);
      }
    }),

    serveRun(routes.listChildRuns, async ({ session, query, waiting }) => {
      const { run_ids: runIds, wait_ms: waitMs, until } = query;
      const awaited = await awaitChildren(executionDeps, session, { runIds, until, waitMs, signal: waiting() });
      if (awaited === 'not_found') return notFound('run');
      return { child_runs: await readChildren(db, session.runId, runIds) };
    }),

    serveRun(routes.getChildRun, async ({ session, params, query, waiting }) => {
      const wait = { runIds: [params.childRunId], until: 'all', waitMs: query.wait_ms, signal: waiting() } as const;
      const awaited = await awaitChildren(executionDeps, session, wait);
      return awaited === 'not_found' ? notFound('run') : await readChild(session, params.childRunId);
    }),

    serveRun(routes.listOwnArtifacts, async ({ session }) => await readOwnArtifacts(db, session.runId)),

    serveRun(routes.cancelChildRun, async ({ session, params, waiting }) => {
      switch (await cancelChild(executionDeps, session, params.childRunId, waiting())) {
        case 'not_found':
          return notFound('run');
        case 'pending':
          return refuse('conflict', { detail: 'The run is still PENDING; try again in some seconds.' });
        case 'done':
          return await readChild(session, params.childRunId);
      }
    }),
  ];
}
