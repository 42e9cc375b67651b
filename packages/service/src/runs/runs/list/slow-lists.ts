import { maxListSeconds, maxScansOfTeam } from '@runyard/contract/limits';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { plannedByValues } from '../../../platform/store/database/planned-by-values.ts';
import { byPages } from './strategies.ts';

/** Thrown if a list of runs takes too long, or waits too long for other slow lists of the team. */
export class ListTooSlow extends Error {
  override readonly name = 'ListTooSlow';
}

/** Time limit of a statement that finds runs, and of the wait before a scan, in ms. */
const slowLimitMs = maxListSeconds * 1000;

interface Waiting {
  running: number;
  readonly queue: (() => void)[];
}
const teams = new Map<string, Waiting>();

/** Calls `read` in a transaction with these settings. Throws `ListTooSlow` if a statement takes too long. */
export async function withinLimit<T>(
  db: Database,
  read: (tx: Queryable) => Promise<T>,
  settings: string,
  limitMs = slowLimitMs,
): Promise<T> {
  try {
    return await plannedByValues(db, read, `SET LOCAL statement_timeout = ${limitMs}; ${settings}`);
  } catch (error) {
    // The code of a canceled statement.
    if ((error as { code?: unknown }).code !== '57014') throw error;
    throw new ListTooSlow('the list takes too long', { cause: error });
  }
}

/** Calls `read` in a transaction that may read the whole table. Throws `ListTooSlow`. `limitMs`: for tests. */
export async function whileFewAreSlow<T>(
  db: Database,
  teamId: string,
  read: (tx: Queryable) => Promise<T>,
  limitMs = slowLimitMs,
): Promise<T> {
  const team = teams.get(teamId) ?? { running: 0, queue: [] };
  teams.set(teamId, team);
  // A statement that ends passes its place to the statement that has waited longest.
  if (team.running < maxScansOfTeam) team.running += 1;
  else await turnOf(team, limitMs);
  try {
    return await withinLimit(db, read, byPages, limitMs);
  } finally {
    const next = team.queue.shift();
    if (next) next();
    else if (--team.running === 0) teams.delete(teamId);
  }
}

/** Waits until a statement of the team has ended. Throws `ListTooSlow` after the time limit. */
async function turnOf({ queue }: Waiting, limitMs: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const begin = () => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(() => {
      queue.splice(queue.indexOf(begin), 1);
      reject(new ListTooSlow('the team has too many slow lists'));
    }, limitMs);
    queue.push(begin);
  });
}
