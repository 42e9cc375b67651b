import type { LiveEvent } from '@runyard/contract/live-events';
import type { RunState } from '@runyard/contract/states';
import { isTerminal } from '@runyard/contract/states';

/** True where nothing more will come without a person: the run has ended, or waits for an answer. */
export function isSettled(state: RunState): boolean {
  return isTerminal(state) || state === 'BLOCKED';
}

/** The events up to and with the one that settles the run. */
export async function* untilSettled(events: AsyncIterable<LiveEvent>): AsyncGenerator<LiveEvent> {
  for await (const event of events) {
    yield event;
    if (event.type === 'state' && isSettled(event.state)) return;
  }
}
