import { maxRunsInTree } from '@runyard/contract/limits';
import type { ChildRunRequest } from '@runyard/contract/runs/child-runs';
import type { RepeatableRequest } from '../../../platform/idempotency/once.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { readChildRunsPermission } from '../tree/permission.ts';
import { childRequest } from './child-request.ts';
import type { SubmitDeps } from './prepare.ts';
import { type SubmitOutcome, submitRun } from './submit.ts';

/** Outcome of the start of a child run: that of its submission, or `gone` (404): the run of the session was deleted. */
export type StartChildOutcome = SubmitOutcome | { readonly kind: 'gone' };

/** Starts a run below the run of a session, of the same team and creator. */
export async function startChild(
  deps: SubmitDeps,
  session: RunSession,
  asked: ChildRunRequest,
  once: RepeatableRequest | undefined,
): Promise<StartChildOutcome> {
  const permission = await readChildRunsPermission(deps.executionDeps.db, session);
  const child = await childRequest(deps.executionDeps, session, asked);
  if (child.kind !== 'ok') return child;
  return await submitRun(deps, {
    actor: { teamId: session.teamId, creator: child.creator },
    request: child.request,
    source: 'ORCHESTRATION',
    child: { attempt: session, maxLive: permission?.max_live ?? 0, maxInTree: maxRunsInTree },
    once,
  });
}
