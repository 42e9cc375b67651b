/** While a run has not begun, prints why it waits. */
import type { Client } from '@runyard/client';
import type { RunState } from '@runyard/contract/runs/states';
import type { Colours } from '../../../terminal/colours.ts';
import { harmless } from '../../../terminal/harmless.ts';

/** Time between two reads of the run. Most runs begin before the first read. */
const everyMs = 2000;

/** Time in which a newly started worker connects, even on a slow machine. */
export const workerStartMs = 30_000;

/** Returns true if the run has not begun. In this case, its status message has the reason for the wait. */
export const isWaiting = (state: RunState): boolean => state === 'QUEUED' || state === 'PENDING' || state === 'CLAIMED';

/** Returns the lines of a status message, harmless for a terminal. */
export const waitLines = (message: string): string[] => harmless(message).trimEnd().split('\n');

/**
 * Reads the run every 2 s until it begins, and prints each reason for the wait once. Prints nothing in the first `quietMs` milliseconds.
 * `endLine` ends a line of the view that is still open.
 */
export function showWaits(
  context: { readonly out: (text: string) => void; readonly colours: Colours },
  client: Pick<Client, 'getRun'>,
  runId: string,
  endLine: () => string,
  quietMs = 0,
): { stop(): void } {
  const printedNotes = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const again = (afterMs = everyMs) => {
    if (!isStopped) timer = setTimeout(note, afterMs);
  };
  const note = () => {
    client.getRun({ params: { runId } }).then(
      ({ state, status_message }) => {
        if (isStopped || !isWaiting(state)) return;
        for (const line of waitLines(status_message?.message ?? '').filter((text) => !printedNotes.has(text))) {
          printedNotes.add(line);
          context.out(`${endLine()}  ${context.colours.yellow(line)}\n`);
        }
        again();
      },
      // Ignores a failed read, because the function that reads the event stream reports a lost connection.
      () => again(),
    );
  };
  again(Math.max(quietMs, everyMs));
  return {
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
