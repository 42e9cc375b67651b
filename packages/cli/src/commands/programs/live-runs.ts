import { ApiError, ConnectionError, createClient } from '@runyard/client';
import type { RunItem } from '@runyard/contract/runs/runs';
import { type Context, folderKey } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { describeProblem } from '../../service/connect.ts';

/** The runs that would end if the programs were stopped now. */
export interface LiveRuns {
  readonly count: number;
  /** True if there are more live runs than `count`. */
  readonly more: boolean;
  /** The live runs that the command shows: the first of all. */
  readonly first: readonly RunItem[];
}

const mostCounted = 100;
const mostShown = 10;

/**
 * Reads the runs on which an agent works or will work at once. Queued and BLOCKED runs are not live: queued runs begin after the next
 * start, and BLOCKED runs keep their workspace and continue after an answer. If the service does not answer, returns no live runs,
 * because agents cannot report to this service.
 * @throws Failure if the service answers but refuses to list its runs, unless `anyway` is set
 */
export async function readLiveRuns(context: Context, origin: string, anyway: boolean): Promise<LiveRuns> {
  const { RUNYARD_BOOTSTRAP_KEY, RUNYARD_API_KEY } = context.settings;
  const key = folderKey(context.folder) ?? RUNYARD_BOOTSTRAP_KEY ?? RUNYARD_API_KEY;
  const client = createClient({
    baseUrl: origin,
    ...(key === undefined ? {} : { apiKey: key }),
    userAgent: 'runyard-cli',
    timeoutMs: 10_000,
    retries: 0,
  });
  try {
    const { runs, page_info } = await client.listRuns({
      query: { state: ['PENDING', 'CLAIMED', 'INPROGRESS'], limit: mostCounted, sort_by: 'created_at' },
    });
    return { count: runs.length, more: page_info.has_next_page, first: runs.slice(0, mostShown) };
  } catch (error) {
    const reason = error instanceof ApiError ? describeProblem(error) : error instanceof Error ? error.message : error;
    if (!(error instanceof ApiError || error instanceof ConnectionError)) throw error;
    if (error instanceof ApiError && !anyway)
      throw new Failure(
        `cannot see whether runs are live: ${reason}\nTo stop anyway and end the runs: bin/runyard down --force`,
      );
    context.report(`cannot see whether runs are live (${reason}); stopping anyway`);
    return { count: 0, more: false, first: [] };
  }
}
