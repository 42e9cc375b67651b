import type { TeamBudget, UpdateTeamBudgetRequest } from '@runyard/contract/team/budgets';
import type { Fault } from '../../../platform/fault.ts';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  float,
  nullable,
  text,
  timestamp,
} from '../../../platform/store/database/statement.ts';
import { recordChange } from '../../access/audit/record.ts';
import type { Principal } from '../../access/keys/principal.ts';

const readBudget = defineStatement({
  name: 'read_team_budget',
  text: `
    SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM') AS month, coalesce(s.spent_usd, 0)::float8 AS spent,
      b.monthly_limit_usd::float8 AS monthly, b.credits::float8 AS credits, b.updated_at
    FROM (SELECT) one LEFT JOIN team_budgets b ON b.team_id = $1
      LEFT JOIN team_spend s ON s.team_id = $1 AND s.month = date_trunc('month', now() AT TIME ZONE 'UTC')::date`,
  row: {
    month: text(),
    spent: float,
    monthly: nullable(float),
    credits: nullable(float),
    updated_at: nullable(timestamp),
  },
});

type Rules = NonNullable<TeamBudget['notify']>;

/** Functions of a higher room for the notification rules of a budget. */
export interface BudgetRules {
  read(db: Queryable, teamId: string): Promise<Rules>;
  check(db: Queryable, by: Principal, rules: Rules | undefined, present: Rules): Promise<Fault[]>;
  /** Undefined: the rules do not change. */
  set(tx: Queryable, teamId: string, rules: Rules | undefined): Promise<void>;
}

const rounded = (amount: number): number => Math.round(amount * 1e6) / 1e6;

/** Returns the limits of a team, and the amount that the team has spent this month. */
export async function readTeamBudget(db: Queryable, teamId: string, rules: BudgetRules): Promise<TeamBudget> {
  const [row] = await db.query(readBudget, [teamId]);
  if (!row) throw new Error('the budget was not read');
  const notify = await rules.read(db, teamId);
  return {
    month: row.month,
    spent_usd: rounded(row.spent),
    ...(row.monthly === null ? {} : { monthly_limit_usd: row.monthly }),
    ...(row.credits === null ? {} : { credits: rounded(row.credits) }),
    ...(notify.length > 0 ? { notify } : {}),
    ...(row.updated_at === null ? {} : { updated_at: row.updated_at }),
  };
}

/** Locks the row. So if two changes of a budget are concurrent, the audit log shows the right earlier value for each of them. */
const lockBudget = defineStatement({
  name: 'lock_team_budget',
  text: 'SELECT FROM team_budgets WHERE team_id = $1 FOR UPDATE',
  row: {},
});

const writeBudget = defineStatement({
  name: 'write_team_budget',
  text: `
    INSERT INTO team_budgets AS b (team_id, monthly_limit_usd, credits) VALUES ($1, $2, $4)
    ON CONFLICT (team_id) DO UPDATE SET updated_at = now(),
      monthly_limit_usd = CASE WHEN $3::boolean THEN excluded.monthly_limit_usd ELSE b.monthly_limit_usd END,
      credits = CASE WHEN $5::boolean THEN excluded.credits ELSE b.credits END`,
  row: {},
});

/** Changes the limits that the request contains, and returns the budget after the change. */
export async function updateTeamBudget(
  db: Database,
  by: Principal,
  { monthly_limit_usd, credits, notify }: UpdateTeamBudgetRequest,
  rules: BudgetRules,
): Promise<{ kind: 'updated'; budget: TeamBudget } | { kind: 'invalid'; faults: readonly Fault[] }> {
  const { teamId, teamUid } = by;
  return await db.transaction(async (tx) => {
    await tx.query(lockBudget, [teamId]);
    const before = await readTeamBudget(tx, teamId, rules);
    const faults = await rules.check(tx, by, notify, before.notify ?? []);
    if (faults.length > 0) return { kind: 'invalid', faults };
    await rules.set(tx, teamId, notify);
    await tx.query(writeBudget, [
      teamId,
      monthly_limit_usd ?? null,
      monthly_limit_usd !== undefined,
      credits ?? null,
      credits !== undefined,
    ]);
    const after = await readTeamBudget(tx, teamId, rules);
    const states = { before: limitsOf(before), after: limitsOf(after) };
    await recordChange(tx, by, { action: 'budget.update', subject: { type: 'budget', uid: teamUid }, ...states });
    return { kind: 'updated', budget: after };
  });
}

const limitsOf = ({ monthly_limit_usd, credits, notify }: TeamBudget) => ({ monthly_limit_usd, credits, notify });

/** Columns of `teamBudgetState`. */
export interface TeamBudgetState {
  readonly is_month_spent: boolean;
  readonly is_out_of_credits: boolean;
  readonly is_limited: boolean;
}

/** SQL: columns that say whether the team with the id `team` may still spend on models. */
export const teamBudgetState = (team: string): string => `
  coalesce((SELECT b.credits <= 0 FROM team_budgets b WHERE b.team_id = ${team}), false) AS is_out_of_credits,
  coalesce((SELECT b.monthly_limit_usd <= coalesce((SELECT s.spent_usd FROM team_spend s WHERE s.team_id = ${team}
      AND s.month = date_trunc('month', now() AT TIME ZONE 'UTC')::date), 0)
    FROM team_budgets b WHERE b.team_id = ${team}), false) AS is_month_spent,
  EXISTS (SELECT FROM team_budgets b WHERE b.team_id = ${team}
    AND (b.credits IS NOT NULL OR b.monthly_limit_usd IS NOT NULL)) AS is_limited`;

const readState = defineStatement({
  name: 'read_team_budget_state',
  text: `SELECT ${teamBudgetState('$1::uuid')}`,
  row: { is_month_spent: boolean, is_out_of_credits: boolean, is_limited: boolean },
});

/** Returns true if the team may not spend anything more on models now. */
export async function isTeamOutOfBudget(db: Queryable, teamId: string): Promise<boolean> {
  const [state] = await db.query(readState, [teamId]);
  return state !== undefined && (state.is_month_spent || state.is_out_of_credits);
}
