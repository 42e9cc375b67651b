import { type AmbientAgentConfig, budgetOf, type RunBudget } from '@runyard/contract/runs/config';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, float, json, nullable, text } from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import type { RunRights } from '../../../team/access/contents/run-rights.ts';
import { allowedSeconds, workedSeconds } from '../../executions/time.ts';
import type { RunCheckout } from '../read/checkout.ts';

const readParent = defineStatement({
  name: 'read_parent_of_request',
  text: `SELECT config, model_id, rights, checkout, executor_kind AS kind, executor_uid AS uid, ${allowedSeconds('runs.id')} - ${workedSeconds('runs.id')} AS seconds_left
    FROM runs JOIN run_requests ON run_id = id WHERE id = $1`,
  row: {
    config: json<AmbientAgentConfig>(),
    model_id: text(),
    /** NULL if the run was created before runs had rights. */
    rights: nullable(json<RunRights>()),
    checkout: nullable(json<RunCheckout>()),
    kind: text<RunActor['kind']>(),
    uid: text(),
    /** null if the parent has no max_duration_minutes. */
    seconds_left: nullable(float),
  },
});

/** The parts of a run that decide about the runs below it. */
export interface ParentRow extends RunActor {
  config: AmbientAgentConfig;
  model_id: string;
  rights: RunRights | null;
  checkout: RunCheckout | null;
  seconds_left: number | null;
}

/** Reads the parent of a run to create; undefined if it was deleted. */
export async function readParentRow(db: Queryable, runId: string): Promise<ParentRow | undefined> {
  const [parent] = await db.query(readParent, [runId]);
  return parent;
}

/** Time limit, in minutes, of a child whose parent has no time left. */
const noTime = 0.001;

/**
 * Returns the limits of a child. They are at most the limits of the parent, and the time is at most the time that the parent has left. The
 * usage of the child also counts against the parent's budget. The limits stay valid if the parent is deleted.
 */
export function narrowedBudget({ config, seconds_left }: ParentRow, own: AmbientAgentConfig): RunBudget {
  const parent = budgetOf(config);
  const left = seconds_left === null ? undefined : Math.max(seconds_left / 60, noTime);
  const smaller = (a: number | undefined, b: number | undefined) =>
    a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
  const limits = {
    max_cost_usd: smaller(parent.max_cost_usd, own.max_cost_usd),
    max_turns: smaller(parent.max_turns, own.max_turns),
    max_duration_minutes: smaller(left, own.max_duration_minutes),
  };
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
}
