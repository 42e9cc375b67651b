/** Counts the runs of a list. The number of runs that it reads has a maximum, so the time does not grow with the number of runs. */

import {
  type CountStep,
  countSteps,
  maxCounted,
  maxCountSteps,
  type RunCounts,
  type RunCountsQuery,
  type RunStateCounts,
} from '@runyard/contract/runs/run-counts';
import type { RunState } from '@runyard/contract/runs/states';
import type { Fault } from '../../../platform/fault.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { spendOf } from '../../../team/usage/record-usage.ts';
import { findPage, type ReadPage } from './find-page.ts';
import { findOrRefuse, type ListRefusal, refuseFilters } from './list.ts';

export type CountOutcome = { readonly kind: 'ok'; readonly counts: RunCounts } | ListRefusal;

/** Number of the runs that have one state and were created in one time step, and totals of the whole count. */
interface CountedRow {
  /** Number of the step, from 0; null if the query asks for no steps. */
  readonly step: number | null;
  readonly state: RunState;
  readonly runs: number;
  /** Money that all counted runs together spent. Each row has the same value. */
  readonly spent: string;
  /** Number of runs that were found; `limit` + 1 if there are more than `limit`. */
  readonly found: number;
}

/** The time steps into which an answer divides its period. */
interface Steps {
  /** Milliseconds since 1970. */
  readonly from: number;
  readonly ms: number;
  readonly count: number;
}

/** Counts the runs of the team that match the filters. `now`: the end of the last step, if the query has no end. */
export async function countRuns(
  db: Database,
  teamId: string,
  { step, ...filters }: RunCountsQuery,
  now: Date,
): Promise<CountOutcome> {
  const steps = step === undefined ? null : stepsOf(filters, step, now);
  if (steps && 'path' in steps) return { kind: 'invalid', faults: [steps] };
  const refusal = await refuseFilters(db, teamId, filters);
  if (refusal) return refusal;
  const isInTime = filters.created_after !== undefined || filters.updated_after !== undefined;
  const limit = isInTime ? maxCounted.inTime : maxCounted.ever;
  const query = { ...filters, limit, view: 'summary', sort_by: 'updated_at', sort_order: 'desc' } as const;
  const request = { teamId, query, position: null, count: limit + 1 };
  const found = await findOrRefuse(query, () => findPage(db, request, readCounts(limit, steps)));
  if ('kind' in found) return found;
  const { rows } = found;
  const byStep = Array.from({ length: steps?.count ?? 0 }, (): RunStateCounts => ({}));
  const states: RunStateCounts = {};
  for (const { step, state, runs } of rows) {
    states[state] = (states[state] ?? 0) + runs;
    const ofStep = step === null ? undefined : byStep[Math.min(Math.max(step, 0), byStep.length - 1)];
    if (ofStep) ofStep[state] = (ofStep[state] ?? 0) + runs;
  }
  return {
    kind: 'ok',
    counts: {
      total: rows.reduce((sum, { runs }) => sum + runs, 0),
      is_exact: (rows[0]?.found ?? 0) <= limit,
      states,
      spent_usd: Number(rows[0]?.spent ?? 0),
      ...(steps
        ? {
            steps: byStep.map((states, n) => ({
              started_at: new Date(steps.from + n * steps.ms).toISOString(),
              states,
            })),
          }
        : {}),
    },
  };
}

function stepsOf(
  { created_after, created_before }: Pick<RunCountsQuery, 'created_after' | 'created_before'>,
  step: CountStep,
  now: Date,
): Steps | Fault {
  if (created_after === undefined)
    return { path: 'step', message: 'needs created_after, the time at which the first step begins' };
  const from = Date.parse(created_after);
  const to = created_before === undefined ? now.getTime() : Date.parse(created_before);
  const ms = countSteps[step];
  const count = Math.max(0, Math.ceil((to - from) / ms));
  if (count <= maxCountSteps) return { from, ms, count };
  return {
    path: 'step',
    message: `gives ${count} steps of this range, and ${maxCountSteps} are allowed; send a larger step or a later created_after`,
  };
}

/**
 * Returns SQL for the number of the step in which the run was created. `bind` adds a value to the query and returns the placeholder of the
 * value.
 */
const stepOf = (createdAt: string, steps: Steps | null, bind: (value: unknown) => string): string =>
  steps
    ? `floor(date_part('epoch', ${createdAt} - ${bind(new Date(steps.from).toISOString())}::timestamptz) * 1000 / ${bind(steps.ms)}::integer)::integer`
    : 'NULL::integer';

/**
 * Returns SQL that counts the runs of the relation `counted` (id, state, step, ancestor_ids). `found`: SQL for the number of runs that were
 * found.
 */
const countsOf = (found: string): string => `
  below AS MATERIALIZED (
    SELECT c.id FROM (SELECT * FROM counted WHERE ancestor_ids <> '{}') c
    CROSS JOIN LATERAL unnest(c.ancestor_ids) above(id) JOIN counted a ON a.id = above.id
  ), spend AS (
    SELECT coalesce(sum(${spendOf('c.id')}), 0) AS spent FROM counted c WHERE c.id NOT IN (SELECT id FROM below)
  )
  SELECT step, state, count(*)::integer AS runs, (SELECT spent FROM spend)::text AS spent, ${found}::integer AS found
  FROM counted GROUP BY step, state`;

/** Returns the function that counts at most `limit` of the runs that a query finds. */
const readCounts =
  (limit: number, steps: Steps | null): ReadPage<CountedRow> =>
  async (db, _, page) => {
    const values = [...page.values];
    const bind = (value: unknown) => `$${values.push(value)}`;
    // Prevent a scan of the whole table, which the planner might choose because the page is so large.
    await db.query('SET LOCAL enable_seqscan = off');
    return await db.query(
      `WITH page AS MATERIALIZED (${page.text}), counted AS MATERIALIZED (
         SELECT r.id, r.state, r.ancestor_ids, ${stepOf('r.created_at', steps, bind)} AS step
         FROM (SELECT id FROM page LIMIT ${bind(limit)}::integer) p JOIN runs r ON r.id = p.id
       ), ${countsOf('(SELECT count(*) FROM page)')}`,
      values,
    );
  };
