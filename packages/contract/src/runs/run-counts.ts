import { z } from 'zod';
import { Timestamp } from '../wire/primitives.ts';
import { RunFilters } from './run-list.ts';
import { runStates } from './run-states.ts';

/** Lengths of the steps of time into which counts can be divided, in milliseconds. */
export const countSteps = {
  '1m': 60_000,
  '5m': 300_000,
  '15m': 900_000,
  '1h': 3_600_000,
  '6h': 21_600_000,
  '1d': 86_400_000,
} as const;
export type CountStep = keyof typeof countSteps;

/** Maximum number of steps in one answer. */
export const maxCountSteps = 500;
/** Maximum number of runs that one request counts: `inTime` if the request limits the time of the runs, `ever` if it does not. */
export const maxCounted = { inTime: 20_000, ever: 1_000 } as const;

/** Query of `GET /agent/runs/counts`. */
export const RunCountsQuery = z.object({
  ...RunFilters.shape,
  step: z
    .enum(Object.keys(countSteps) as [CountStep, ...CountStep[]])
    .optional()
    .meta({
      id: 'CountStep',
      description: `Also counts the runs of each step of time, by their creation. Needs \`created_after\`, at which the first step begins; the last step ends at \`created_before\`, or now. At most ${maxCountSteps} steps`,
    }),
});
export type RunCountsQuery = z.infer<typeof RunCountsQuery>;

const count = z.int().optional().describe('Absent: none');

/** Numbers of runs by state. */
export const RunStateCounts = z
  .object(
    Object.fromEntries(runStates.map((state) => [state, count])) as Record<(typeof runStates)[number], typeof count>,
  )
  .meta({ id: 'RunStateCounts', description: 'How many runs are in each state' });
export type RunStateCounts = z.infer<typeof RunStateCounts>;

/** The runs of one step of time. */
const RunCountsOfStep = z
  .object({
    started_at: Timestamp.describe('When the step begins, RFC 3339 in UTC'),
    states: RunStateCounts.describe('Runs that were created in the step, by their present state'),
  })
  .meta({ id: 'RunCountsOfStep', description: 'The runs of one step of time' });

/** Answer of `GET /agent/runs/counts`. */
export const RunCounts = z
  .object({
    total: z.int().describe('Runs that match'),
    is_exact: z
      .boolean()
      .describe(
        `False: more runs match. In this case, the numbers cover only the ${maxCounted.inTime.toLocaleString('en')} newest of them, or the ${maxCounted.ever.toLocaleString('en')} newest without \`created_after\` and \`updated_after\``,
      ),
    states: RunStateCounts.describe('The runs by their present state'),
    spent_usd: z
      .number()
      .describe(
        'US dollars for model requests of the counted runs and of all runs below them, each run counted once, as in budgets',
      ),
    steps: z.array(RunCountsOfStep).optional().describe('With `step`: each step, oldest first'),
  })
  .meta({ id: 'RunCounts', description: 'Numbers of runs' });
export type RunCounts = z.infer<typeof RunCounts>;
