/** Runs below an agent's own: started, listed, awaited and cancelled with the token of its execution. */

import type { ChildRun, ChildRunResponse } from '@runyard/contract/child-runs';
import { maxRunsInTree } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { notFound, type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import { cancelRun } from '../../../runs/executions/cancel/cancel.ts';
import type { RunSession } from '../../../runs/executions/run-tokens/sessions.ts';
import { waitForRuns } from '../../../runs/executions/wait-for-runs.ts';
import { childRequest } from '../../../runs/runs/submit/child-request.ts';
import { refusedSubmission } from '../../../runs/runs/submit/refused.ts';
import { submitRun } from '../../../runs/runs/submit/submit.ts';
import { awaitChildren } from '../../../runs/runs/tree/await-children.ts';
import { readChildRunsPermission } from '../../../runs/runs/tree/permission.ts';
import { readChildren } from '../../../runs/runs/tree/read-children.ts';
import { addRoute, type Call } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { waitingSignals } from '../server/waiting.ts';

const notAllowed = (): Refusal =>
  refuse('not_authorized', {
    detail:
      'This run may not start others. Whoever creates it allows it with the mode orchestrate, or with config.child_runs {"enabled": true}.',
  });

/** PENDING lasts 30 s at most; an agent is answered before that. */
const pendingPatienceMs = 20_000;

/** Registers the child-runs routes. */
export function registerChildRunRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db, executionDeps } = deps;
  const signalOf = waitingSignals(app);

  addRoute(app, routes.startChildRun, (call) => startChild(deps, call));

  addRoute(app, routes.listChildRuns, async ({ session, query, request }) => {
    if (!(await readChildRunsPermission(db, session))) return notAllowed();
    const { run_ids: runIds, wait_ms: waitMs, until } = query;
    const awaited = await awaitChildren(executionDeps, session, { runIds, until, waitMs, signal: signalOf(request) });
    if (awaited === 'not_found') return notFound('run');
    return { child_runs: await readChildren(db, session.runId, runIds) };
  });

  const readChild = async (session: RunSession, runId: string): Promise<ChildRun | Refusal> =>
    (await readChildren(db, session.runId, [runId]))[0] ?? notFound('run');

  addRoute(app, routes.getChildRun, async ({ session, params, query, request }) => {
    if (!(await readChildRunsPermission(db, session))) return notAllowed();
    const wait = {
      runIds: [params.childRunId],
      until: 'all',
      waitMs: query.wait_ms,
      signal: signalOf(request),
    } as const;
    const awaited = await awaitChildren(executionDeps, session, wait);
    return awaited === 'not_found' ? notFound('run') : await readChild(session, params.childRunId);
  });

  addRoute(app, routes.cancelChildRun, async ({ session, params, request }) => {
    if (!(await readChildRunsPermission(db, session))) return notAllowed();
    const runIds = [params.childRunId];
    const signal = signalOf(request);
    if ((await awaitChildren(executionDeps, session, { runIds, until: 'all', waitMs: 0, signal })) === 'not_found')
      return notFound('run');
    const runId = params.childRunId.toLowerCase();
    const wait = { runIds: () => [runId], waitMs: pendingPatienceMs, signal };
    const outcome = await waitForRuns(executionDeps.notices, wait, async () => {
      const cancelled = await cancelRun(executionDeps, params.childRunId, session);
      return cancelled === 'pending' ? undefined : cancelled;
    });
    if (outcome === undefined)
      return refuse('conflict', { detail: 'The run is still PENDING; try again in some seconds.' });
    return await readChild(session, params.childRunId);
  });
}

async function startChild(
  deps: ServiceDeps,
  call: Call<typeof routes.startChildRun>,
): Promise<ChildRunResponse | Refusal> {
  const { session } = call;
  const permission = await readChildRunsPermission(deps.db, session);
  if (!permission) return notAllowed();
  const child = await childRequest(deps.executionDeps, session, call.body);
  if (child.kind === 'gone') return notFound('run');
  if (child.kind === 'forbidden') return refuse('not_authorized', { detail: child.detail });
  const outcome = await submitRun(deps, {
    actor: { teamId: session.teamId, creator: child.creator },
    request: child.request,
    source: 'ORCHESTRATION',
    child: { attempt: session, maxLive: permission.max_live, maxInTree: maxRunsInTree },
    once: call.once,
  });
  if (outcome.kind !== 'submitted') return refusedSubmission(outcome);
  const { run_id, state } = outcome.response;
  return { run_id, state };
}
