import type { LiveEvent } from '@runyard/contract/live-events';
import { isSettled } from '@runyard/contract/run-states';

/** Yields the events up to the one that settles the run, which is included. */
export async function* untilSettled(events: AsyncIterable<LiveEvent>): AsyncGenerator<LiveEvent> {
  for await (const event of events) {
    yield event;
    if (event.type === 'state' && isSettled(event.state)) return;
  }
}
