import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import { joinKey } from './waiting-events.ts';

export interface Pauses {
  /** Called with each event in order. */
  observe(event: AgentEventBody): void;
  forget(): void;
}

/**
 * Calls `add` with a piece without text if no other piece follows for `pauseMs`. The reason: the service holds back the end of a text that
 * may be the beginning of a secret until it gets the next piece. An empty piece makes the service show a short end. A text that ends with
 * white space needs no such piece.
 */
export function watchPauses(pauseMs: number, add: (event: AgentEventBody) => void): Pauses {
  /** Timers of the streams whose last piece may be shown incompletely, by the key of the stream. */
  const timers = new Map<string, NodeJS.Timeout>();
  function forget(): void {
    for (const timer of timers.values()) clearTimeout(timer);
    timers.clear();
  }
  return {
    forget,
    observe(event) {
      if (event.type === 'turn_finished') forget();
      const key = joinKey(event);
      if (key === undefined || !(event.type === 'text' || event.type === 'action_output')) return;
      clearTimeout(timers.get(key));
      timers.delete(key);
      if (/\s$/.test(event.text)) return;
      const pause = () => {
        timers.delete(key);
        add({ ...event, text: '' });
      };
      timers.set(key, setTimeout(pause, pauseMs).unref());
    },
  };
}
