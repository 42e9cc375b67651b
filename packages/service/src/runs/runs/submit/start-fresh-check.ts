/** Starts the run that runs one check of another run in a fresh sandbox. */
import type { StartFreshCheck } from '@runyard/contract/agent/fresh-checks';
import { maxRunsInTree, usualCheckAttempts } from '@runyard/contract/limits';
import type { RunCheck } from '@runyard/contract/runs/checks';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RunAgentRequest } from '@runyard/contract/runs/run-request';
import type { RunRights } from '../../../team/access/contents/run-rights.ts';
import { readBaseCommits } from '../../executions/fresh-checks/base-commits.ts';
import {
  countFreshChecks,
  type FreshCheckKey,
  type FreshCheckParts,
  findFreshCheck,
  insertFreshCheck,
} from '../../executions/fresh-checks/fresh-checks.ts';
import { networkOfCheck } from '../../executions/fresh-checks/network-of-check.ts';
import { lockWorkingAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { findSnapshotOfTurn } from '../../files/handoffs/read.ts';
import { canRunFreshChecks } from './fresh-check-faults.ts';
import { narrowedBudget, type ParentRow, readParentRow } from './parent.ts';
import { discardRun, type PreparedRun, prepareRun, type SubmitDeps } from './prepare.ts';
import { type SubmitRefusal, writeRun } from './submit.ts';

/** Outcome of the start. */
export type StartFreshCheckOutcome =
  | { readonly kind: 'started'; readonly runId: string }
  /** 400: the configuration has no such check. */
  | { readonly kind: 'no_such_check' }
  /** 409: the check cannot run now. */
  | { readonly kind: 'impossible'; readonly detail: string }
  | Exclude<SubmitRefusal, { kind: 'idempotency_conflict' }>
  /** 404: the run of the session was deleted. */
  | { readonly kind: 'gone' };

/**
 * Starts a check of the session's run, or returns the run that the same request started before. The service has recorded both inputs of the
 * check: the configuration, and the base commits, which were reported before the harness got its first prompt.
 * Throws `AttemptOver`.
 */
export async function startFreshCheck(
  deps: SubmitDeps,
  session: RunSession,
  asked: StartFreshCheck,
): Promise<StartFreshCheckOutcome> {
  const { db } = deps.executionDeps;
  const key: FreshCheckKey = { executionId: session.executionId, ...asked };
  const earlier = await findFreshCheck(db, key);
  if (earlier !== undefined) return { kind: 'started', runId: earlier };
  const parent = await readParentRow(db, session.runId);
  if (!parent) return { kind: 'gone' };
  const check = parent.config.checks?.find(({ name, fresh }) => fresh === true && name === asked.name);
  if (check === undefined) return { kind: 'no_such_check' };
  const parts = await partsOf(deps, session, check, key, parent.config);
  if ('kind' in parts) return parts;
  const prepared = await prepareRun(deps, {
    actor: { teamId: session.teamId, creator: { kind: parent.kind, uid: parent.uid } },
    request: requestOf(parent, session, check),
    source: 'ORCHESTRATION',
    within: rightsOfCheck(parent),
    child: { attempt: session, maxLive: Number.POSITIVE_INFINITY, maxInTree: maxRunsInTree },
    isFreshCheck: true,
    checkout: parent.checkout ?? undefined,
  });
  if (prepared.kind !== 'prepared') return prepared;
  const most = 1 + (parent.config.check_attempts ?? usualCheckAttempts);
  const outcome = await write(deps, session, prepared, key, { ...parts, most });
  if (outcome.kind !== 'started' || outcome.runId !== prepared.run.id) await discardRun(deps, prepared);
  return outcome;
}

const impossible = (detail: string) => ({ kind: 'impossible' as const, detail });

/** Returns what the run of the check needs, or the reason why the check cannot run. */
async function partsOf(
  { executionDeps: { db } }: SubmitDeps,
  session: RunSession,
  { trusted_paths: trustedPaths = [] }: RunCheck,
  key: FreshCheckKey,
  config: AmbientAgentConfig,
): Promise<FreshCheckParts | Extract<StartFreshCheckOutcome, { kind: 'impossible' }>> {
  const [baseCommits, snapshotId, isAble] = await Promise.all([
    readBaseCommits(db, session.runId),
    findSnapshotOfTurn(db, session.executionId, key.turn),
    canRunFreshChecks(db, { teamId: session.teamId, config }),
  ]);
  if (baseCommits.length === 0)
    return impossible('The base commits of the workspace are not known: this run cloned no repository.');
  if (snapshotId === undefined) return impossible('The changes of this turn are not stored.');
  if (!isAble)
    return impossible('No connected worker of this pool has sandboxes that can be cut off from the network.');
  return { snapshotId, trustedPaths, baseCommits };
}

/**
 * Writes the run together with its check, unless the same request of another connection has done so. `most`: how many tries the check has
 * in a turn.
 */
async function write(
  { executionDeps: { db } }: SubmitDeps,
  session: RunSession,
  prepared: PreparedRun,
  key: FreshCheckKey,
  { most, ...parts }: FreshCheckParts & { readonly most: number },
): Promise<StartFreshCheckOutcome> {
  return await db.transaction(async (tx) => {
    await lockWorkingAttempt(tx, session, prepared.run.ancestorIds);
    const earlier = await findFreshCheck(tx, key);
    if (earlier !== undefined) return { kind: 'started', runId: earlier };
    if ((await countFreshChecks(tx, key)) >= most)
      return impossible(`The check ${key.name} has no attempt left in this turn.`);
    const outcome = await writeRun(tx, prepared);
    if (outcome.kind !== 'written') return outcome;
    await insertFreshCheck(tx, prepared.run.id, key, parts);
    return { kind: 'started', runId: prepared.run.id };
  });
}

/** A check gets only secrets of the setup, which its own setup needs to be the same. */
const rightsOfCheck = ({ rights }: ParentRow): RunRights => ({
  personal_credentials: rights?.personal_credentials ?? false,
  team_credentials: rights?.team_credentials ?? false,
  withheld: [],
  secrets: rights?.secrets.filter(({ phase }) => phase === 'setup') ?? [],
});

/** Members of the configuration of a run that decide about its sandbox. */
const ofSandbox = ['environment_id', 'runner_config', 'worker_host'] as const;

/**
 * Makes the request for the run of a check: the sandbox of the checked run without its harness, skills and servers. The service
 * allows no connection after the setup.
 */
function requestOf(parent: ParentRow, { runId }: RunSession, check: RunCheck): RunAgentRequest {
  const { config } = parent;
  const { fresh: _, trusted_paths: _paths, ...command } = check;
  const secrets = config.secrets?.filter(({ phase }) => phase === 'setup') ?? [];
  const sandbox = Object.fromEntries(
    ofSandbox.flatMap((name) => (config[name] === undefined ? [] : [[name, config[name]]])),
  );
  return {
    prompt: `Runs the check ${check.name} of the run ${runId} in a fresh sandbox. No agent works in this run.`,
    title: `Check ${check.name}`,
    parent_run_id: runId,
    config: {
      ...sandbox,
      ...narrowedBudget(parent, {}),
      ...(secrets.length > 0 ? { secrets } : {}),
      model_id: 'runbook',
      idle_timeout_minutes: 0,
      check_attempts: 0,
      checks: [command],
      approval_policy: networkOfCheck.approval_policy,
      approval_rules: [...networkOfCheck.approval_rules],
    },
  };
}
