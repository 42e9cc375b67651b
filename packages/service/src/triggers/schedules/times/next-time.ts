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

/** Longest change of a clock. Within this time, a later local time can belong to an earlier instant. */
const changeMs = 3 * 3_600_000;

/**
 * Returns the first time after an instant, milliseconds since 1970; null if there is none. If clocks skip a local time, the next time is
 * later by the skipped duration. If a local time occurs twice, the first of the two counts. This is "compatible" in ECMAScript's Temporal.
 * If the hour is `*` or has a step, the times follow elapsed hours instead: no time in a skipped hour, and all times in a repeated hour.
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

/** Returns the next times in their order, at most `count`. */
export function nextTimes(times: Times, afterMs: number, count: number): number[] {
  const found: number[] = [];
  for (let last: number | null = afterMs; found.length < count; ) {
    last = nextTime(times, last);
    if (last === null) return found;
    found.push(last);
  }
  return found;
}
