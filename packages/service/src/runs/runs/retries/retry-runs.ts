/** Repeats runs that have failed, as their configuration asks for. */
import { maxRunsInTree } from '@runyard/contract/limits';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { type FailedRows, sweepPages } from '../../../platform/store/database/sweep.ts';
import type { RunRights } from '../../../team/access/contents/run-rights.ts';
import { mayStartRuns } from '../../../team/access/may-start-runs.ts';
import { readSpentOfRun } from '../../../team/usage/budget/read-budgets.ts';
import { dueRetries, type FailedRun, readFailedRun, takeRetry } from '../../executions/retries/retries.ts';
import { appendTimelineEvent } from '../../executions/timeline/timeline.ts';
import { notifyOfUnrepeatedFailure } from '../../inbox/write.ts';
import { type PreparedRun, prepareRun, type SubmitDeps } from '../submit/prepare.ts';
import { writeRun } from '../submit/submit.ts';
import { reasonOf, refusedChild } from '../submit/translate.ts';

/** Notes in the transaction of a retry that it takes the place of the failed run. */
export type NoteRetry = (
  tx: Queryable,
  retry: { readonly runId: string; readonly retryId: string; readonly scheduleId: string | undefined },
) => Promise<void>;

/** Creates the runs of all retries that are due. A retry whose transaction fails is tried again later. */
export async function retryRuns(
  deps: SubmitDeps & { readonly noteRetry: NoteRetry },
  failed: FailedRows,
  signal: AbortSignal,
): Promise<void> {
  const { db, log } = deps.executionDeps;
  await sweepPages({
    ...dueRetries(db),
    idOf: ({ run_id }) => run_id,
    work: ({ run_id }) => retryRun(deps, run_id),
    onFailure: ({ run_id }, error, failures) =>
      log.warn({ err: error, run_id, failures }, 'a failed run could not be repeated'),
    failed,
    signal,
  });
}

/** Creates the retry of a run, or records why there is none. Both are one transaction, so a failure is repeated at most once. */
async function retryRun(deps: SubmitDeps & { readonly noteRetry: NoteRetry }, runId: string): Promise<void> {
  await deps.executionDeps.db.transaction(async (tx) => {
    if (!(await takeRetry(tx, runId))) return;
    const run = await readFailedRun(tx, runId);
    // A person has continued the run meanwhile.
    if (!run?.has_failed) return;
    const outcome = await createRetry(deps, tx, runId, run);
    if ('retryId' in outcome)
      await deps.noteRetry(tx, { runId, retryId: outcome.retryId, scheduleId: run.schedule?.id });
    else await notifyOfUnrepeatedFailure(tx, runId);
    await appendTimelineEvent(tx, {
      runId,
      executionId: run.execution_id,
      ...('retryId' in outcome
        ? { type: 'run_retried' as const, payload: { retry_run_id: outcome.retryId } }
        : { type: 'run_not_retried' as const, payload: { reason: outcome.reason } }),
    });
  });
}

/** The rights of a run whose parent was created by a version without rights. */
const noRights: RunRights = { secrets: [], personal_credentials: false, team_credentials: false, withheld: [] };

type RetryOutcome = { readonly retryId: string } | { readonly reason: string };

async function createRetry(deps: SubmitDeps, tx: Queryable, runId: string, run: FailedRun): Promise<RetryOutcome> {
  const actor = { teamId: run.team_id, creator: run.executor };
  const mayStart = await mayStartRuns(tx, [{ teamId: run.team_id, ...run.executor }]);
  if (!mayStart({ teamId: run.team_id, ...run.executor })) return { reason: 'The executor may no longer start runs.' };
  const config = configOfRetry(run, await readSpentOfRun(tx, runId));
  if (config === undefined) return { reason: 'The run has spent its max_cost_usd.' };
  const prepared = await prepareRun(
    deps,
    {
      actor,
      request: { rerunOf: runId, instead: { config }, isRetry: true },
      source: run.source,
      ...(run.schedule ? { schedule: run.schedule } : {}),
      ...(run.parent_run_id === null
        ? {}
        : {
            within: run.parent_rights ?? noRights,
            child: { maxLive: run.max_live_children, maxInTree: maxRunsInTree },
          }),
    },
    tx,
  );
  if (prepared.kind !== 'prepared') return { reason: reasonOf(prepared) };
  const lost = lostRight(run.rights, prepared.run.rights);
  if (lost !== undefined) return { reason: `The new run would lack ${lost}, which the run had.` };
  return await write(tx, prepared);
}

async function write(tx: Queryable, prepared: PreparedRun): Promise<RetryOutcome> {
  const written = await writeRun(tx, prepared);
  if (written.kind === 'written') return { retryId: prepared.run.id };
  return { reason: refusedChild(written.reason).message };
}

/**
 * Returns the configuration of the retry: one retry less, and the money that is left. Undefined if no money is left. So a chain of retries
 * ends, and costs no more than the first run might.
 */
function configOfRetry({ config }: FailedRun, spent: number): AmbientAgentConfig | undefined {
  const { retry, max_cost_usd: limit, ...others } = config;
  const left = limit === undefined ? undefined : limit - spent;
  if (left !== undefined && left <= 0) return undefined;
  return {
    ...others,
    ...(left === undefined ? {} : { max_cost_usd: left }),
    ...(retry !== undefined && retry.max > 1 ? { retry: { ...retry, max: retry.max - 1 } } : {}),
  };
}

/** Returns the name of a right that the failed run had and the new run lacks, for example because an acceptance was withdrawn. */
function lostRight(before: RunRights | null, after: RunRights): string | undefined {
  if (before === null) return undefined;
  const secret = before.secrets.find(({ id }) => !after.secrets.some((each) => each.id === id));
  if (secret) return `the secret ${secret.name}`;
  if (before.personal_credentials && !after.personal_credentials) return 'the personal credentials of its executor';
  const [had, has] = [before.team_credentials !== false, after.team_credentials !== false];
  return had && !has ? 'the credentials of the team' : undefined;
}
