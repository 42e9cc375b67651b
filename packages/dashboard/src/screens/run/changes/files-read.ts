import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import { slowMs } from '../../../api/slow-reads.ts';

/**
 * The sandbox sends the files a moment after the end of the run. So the page reads them every `againMs` milliseconds until `lateMs`
 * milliseconds after the end.
 */
const againMs = 3_000;
export const lateMs = 60_000;
/** Milliseconds between two reads if a person views the changes while the agent works, because the agent then sends its files. */
const liveMs = 5_000;

/** Returns the time of the last turn's end, as an ISO 8601 string. */
export const endOf = (run: RunItem): string => run.finished_at ?? run.updated_at;

/**
 * Returns the milliseconds until the files of a run are read again. `isViewed`: the person views the changes. `isCurrent`: the page has the
 * files of the last turn.
 */
export function filesReadMs(run: RunItem, { isViewed, isCurrent }: { isViewed: boolean; isCurrent: boolean }): number {
  if (!isTerminal(run.state)) return isViewed ? liveMs : slowMs;
  return !isCurrent && Date.now() - Date.parse(endOf(run)) < lateMs ? againMs : slowMs;
}
