import type { Expression } from '@runyard/contract/schedules/cron-expression';
import { Cron } from 'croner';
import { instantsOf, offsetAt } from './time-zone.ts';

/** The parts of a schedule that determine its times. */
export interface Times {
  readonly expression: Expression;
  /** IANA name */
  readonly timezone: string;
  /** Start of the intervals of `@every`, milliseconds since 1970. */
  readonly anchorMs: number;
}

/**
 * The longest change of a zone's clocks. If clocks are set back, two local times with a smaller distance may belong to instants in the
 * opposite order.
 */
const changeMs = 3 * 3_600_000;

/**
 * Returns the first time of a schedule after an instant, both in milliseconds since 1970. Returns null if there is no such time. If
 * clocks skip a local time of the schedule, the schedule fires later, by the skipped duration. If a local time occurs twice, the
 * schedule fires only the first time. ECMAScript's Temporal calls these two rules "compatible". If the hour is `*` or has a step, the schedule
 * follows elapsed hours instead: it does not fire for a skipped hour, and fires in both occurrences of a repeated hour.
 */
export function nextTime({ expression, timezone, anchorMs }: Times, afterMs: number): number | null {
  if (expression.kind === 'every') {
    const { intervalMs } = expression;
    return anchorMs + Math.max(1, Math.floor((afterMs - anchorMs) / intervalMs) + 1) * intervalMs;
  }
  const cron = new Cron(expression.pattern, { utcOffset: 0, paused: true });
  /** Returns the next local time of the expression after a local time. */
  const nextLocal = (local: number): number | null => cron.nextRun(new Date(local))?.getTime() ?? null;
  if (timezone === 'UTC') return nextLocal(afterMs);

  const steadyNear = (instant: number): boolean =>
    offsetAt(timezone, instant - changeMs) === offsetAt(timezone, instant + changeMs);
  const timesAt = (local: number): readonly number[] => {
    const { instants, shifted } = instantsOf(timezone, local);
    if (expression.everyHour) return instants;
    return [instants[0] ?? shifted];
  };
  const isSteady = steadyNear(afterMs);
  let local = nextLocal(afterMs + offsetAt(timezone, afterMs) - (isSteady ? 0 : changeMs));
  let best: number | null = null;
  while (local !== null && (best === null || local <= best + offsetAt(timezone, best) + changeMs)) {
    for (const time of timesAt(local)) {
      if (time > afterMs && (best === null || time < best)) best = time;
    }
    if (best !== null && isSteady && steadyNear(best)) return best;
    local = nextLocal(local);
  }
  return best;
}

/** Returns the next times in their order, at most `count` of them. */
export function nextTimes(times: Times, afterMs: number, count: number): number[] {
  const found: number[] = [];
  for (let last: number | null = afterMs; found.length < count; ) {
    last = nextTime(times, last);
    if (last === null) return found;
    found.push(last);
  }
  return found;
}
