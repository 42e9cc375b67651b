import type { LiveEvent } from '@runyard/contract/live-events';
import { isSettled } from '@runyard/contract/run-states';

/** The events up to and with the one that settles the run. */
export async function* untilSettled(events: AsyncIterable<LiveEvent>): AsyncGenerator<LiveEvent> {
  for await (const event of events) {
    yield event;
    if (event.type === 'state' && isSettled(event.state)) return;
  }
}
