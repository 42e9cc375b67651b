/** Lists why runs ended FAILED or ERROR. A person reads the list to find errors that the planned faults do not explain. */
import type { Queryable } from '../../packages/service/src/platform/store/database/database.ts';

const mostRuns = 20;
const mostCharacters = 300;

export interface FailedRun {
  readonly id: string;
  readonly state: string;
  readonly code: string | null;
  readonly message: string | null;
}

/**
 * Returns a line for each of at most 20 runs that ended FAILED or ERROR, and one line with the number of further runs. Runs with a
 * rare message come first.
 */
export async function readFailures(db: Queryable): Promise<string[]> {
  const rows = await db.query<FailedRun & { readonly total: number }>(
    `SELECT id, state, error_code AS code, left(status_message, $1::int * 2) AS message, count(*) OVER ()::int AS total
     FROM runs WHERE state IN ('FAILED', 'ERROR')
     ORDER BY count(*) OVER (PARTITION BY state, error_code, status_message), id LIMIT $2`,
    [mostCharacters, mostRuns],
  );
  return describeFailures(rows, rows[0]?.total ?? 0);
}

/**
 * Returns a line of Markdown for each of the first 20 runs, and one line with the number of further runs of `total`. A message is cut
 * to 300 characters.
 */
export function describeFailures(runs: readonly FailedRun[], total: number): string[] {
  const lines = runs.slice(0, mostRuns).map(({ id, state, code, message }) => {
    const words = (message ?? '').replaceAll('`', "'").split(/\s+/).join(' ').trim() || 'no message';
    const short = words.length > mostCharacters ? `${words.slice(0, mostCharacters - 1)}…` : words;
    return `- ${state}${code === null ? '' : ` ${code}`}, run ${id}: \`${short}\``;
  });
  return total > lines.length ? [...lines, `- and ${total - lines.length} more`] : lines;
}
