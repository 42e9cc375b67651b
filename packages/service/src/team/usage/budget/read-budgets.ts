import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  float,
  integer,
  json,
  nullable,
  uuid,
} from '../../../platform/store/database/statement.ts';
import type { RunTokenHolder } from '../model-usage.ts';
import type { Budget } from './decide.ts';

/**
 * SQL: a number in the configuration `config`; NULL if the value has another type. That is possible, because earlier versions of the
 * service stored the value unchecked.
 */
const numberOf = (config: string, member: string): string =>
  `CASE WHEN jsonb_typeof(${config}->'${member}') = 'number' THEN (${config}->>'${member}')::float8 END`;

/** The limits that apply to a run: its own limits, and the limits of its ancestors and of its team. */
interface Limits {
  readonly runs: readonly { readonly id: string; readonly cost: number | null; readonly turns: number | null }[];
  readonly monthly: number | null;
  readonly credits: number | null;
}

const readLimitsStatement = defineStatement({
  name: 'read_budget_limits',
  text: `
    SELECT (SELECT coalesce(jsonb_agg(jsonb_build_object('id', q.run_id, 'cost', ${numberOf('q.config', 'max_cost_usd')},
          'turns', ${numberOf('q.config', 'max_turns')}) ORDER BY q.run_id), '[]')
        FROM run_requests q WHERE q.run_id = ANY($1::uuid[]) AND q.config ?| ARRAY['max_cost_usd', 'max_turns']) AS runs,
      b.monthly_limit_usd::float8 AS monthly, b.credits::float8 AS credits
    FROM (SELECT) one LEFT JOIN team_budgets b ON b.team_id = $2`,
  row: { runs: json<Limits['runs']>(), monthly: nullable(float), credits: nullable(float) },
});

/** Returns the limits that apply to a run's requests; null if there are none. */
export async function readLimits(
  db: Queryable,
  { runId, ancestorIds, teamId }: Pick<RunTokenHolder, 'runId' | 'ancestorIds' | 'teamId'>,
): Promise<Limits | null> {
  const [limits] = await db.query(readLimitsStatement, [[runId, ...ancestorIds], teamId]);
  if (!limits) return null;
  const isLimited = limits.monthly !== null || limits.credits !== null;
  return isLimited || limits.runs.some(({ cost, turns }) => cost !== null || turns !== null) ? limits : null;
}

/**
 * Returns true if a limit in dollars or credits applies to a run's requests: a model without a price cannot be used with such a limit.
 */
export async function hasCostLimit(
  db: Queryable,
  run: Pick<RunTokenHolder, 'runId' | 'ancestorIds' | 'teamId'>,
): Promise<boolean> {
  const limits = await readLimits(db, run);
  return (
    limits !== null &&
    (limits.monthly !== null || limits.credits !== null || limits.runs.some(({ cost }) => cost !== null))
  );
}

const makeRunRows = defineStatement({
  name: 'make_run_spend',
  text: `
    INSERT INTO run_spend (run_id) SELECT run_id FROM run_requests WHERE run_id = ANY($1::uuid[]) ORDER BY run_id ON CONFLICT DO NOTHING`,
  row: {},
});

const makeTeamRow = defineStatement({
  name: 'make_team_spend',
  text: `
    INSERT INTO team_spend (team_id, month)
    SELECT id, date_trunc('month', now() AT TIME ZONE 'UTC')::date FROM teams WHERE id = $1 ON CONFLICT DO NOTHING`,
  row: {},
});

/** Locks the runs and then the team, in the same order as `record-usage.ts`. */
const lockRuns = defineStatement({
  name: 'lock_run_spend',
  text: `SELECT run_id, spent_usd::float8 AS spent, answers FROM run_spend WHERE run_id = ANY($1::uuid[]) ORDER BY run_id FOR UPDATE`,
  row: { run_id: uuid, spent: float, answers: integer },
});

const lockTeam = defineStatement({
  name: 'lock_team_spend',
  text: `SELECT spent_usd::float8 AS spent FROM team_spend
    WHERE team_id = $1 AND month = date_trunc('month', now() AT TIME ZONE 'UTC')::date FOR UPDATE`,
  row: { spent: float },
});

/**
 * This statement runs separately, after the locks. So it sees changes that other transactions committed while this transaction waited for
 * the locks.
 */
const readOpen = defineStatement({
  name: 'read_open_model_requests',
  text: `
    SELECT a.id, coalesce(sum(o.reserved_usd), 0)::float8 AS reserved, count(o.id) AS open,
      coalesce(bool_or(o.run_id = $2), false) AS of_run
    FROM unnest($1::uuid[]) AS a(id) LEFT JOIN open_model_requests o ON o.accounts @> ARRAY[a.id] GROUP BY a.id`,
  row: { id: nullable(uuid), reserved: float, open: integer, of_run: boolean },
});

const readCredits = defineStatement({
  name: 'read_credits',
  text: 'SELECT credits::float8 AS credits FROM team_budgets WHERE team_id = $1',
  row: { credits: nullable(float) },
});

/** Locks the rows of the budgets and returns their state. No other request can use these budgets until the transaction ends. */
export async function lockBudgets(
  tx: Queryable,
  holder: RunTokenHolder,
  limits: Limits,
): Promise<{ readonly budgets: readonly Budget[]; readonly runHasOpenRequest: boolean }> {
  const { runId, teamId } = holder;
  const ids = limits.runs.map(({ id }) => id);
  const ofTeam = limits.monthly !== null || limits.credits !== null;
  await tx.query(makeRunRows, [ids]);
  const spent = new Map((await tx.query(lockRuns, [ids])).map((row) => [row.run_id, row]));
  if (ofTeam) await tx.query(makeTeamRow, [teamId]);
  const [team] = ofTeam ? await tx.query(lockTeam, [teamId]) : [];
  const open = new Map(
    (await tx.query(readOpen, [[...new Set([runId, ...ids, teamId])], runId])).map((row) => [row.id, row]),
  );
  const budgets: Budget[] = [];
  for (const { id, cost, turns } of limits.runs) {
    const { spent: used = 0, answers = 0 } = spent.get(id) ?? {};
    const { reserved = 0, open: count = 0 } = open.get(id) ?? {};
    if (turns !== null)
      budgets.push({ kind: 'run_turns', runId: id, limit: turns, used: Number(answers), reserved: Number(count) });
    if (cost !== null) budgets.push({ kind: 'run_cost', runId: id, limit: cost, used, reserved });
  }
  const reserved = open.get(teamId)?.reserved ?? 0;
  if (limits.monthly !== null)
    budgets.push({ kind: 'team_month', limit: limits.monthly, used: team?.spent ?? 0, reserved });
  const [now] = limits.credits === null ? [] : await tx.query(readCredits, [teamId]);
  if (now && now.credits !== null) budgets.push({ kind: 'team_credits', limit: now.credits / 100, used: 0, reserved });
  return { budgets, runHasOpenRequest: open.get(runId)?.of_run ?? false };
}

const readSpent = defineStatement({
  name: 'read_spend_of_run',
  text: 'SELECT spent_usd::float8 AS spent FROM run_spend WHERE run_id = $1',
  row: { spent: float },
});

/** Returns the dollars that a run and all runs below it have spent on models. */
export async function readSpentOfRun(db: Queryable, runId: string): Promise<number> {
  return (await db.query(readSpent, [runId]))[0]?.spent ?? 0;
}
