import type { TimelineEvent } from './timeline.ts';

/** A check of a run with its last outcome. */
export interface ShownCheck {
  readonly name: string;
  /** Undefined while the check runs. */
  readonly passed: boolean | undefined;
  readonly durationMs: number | undefined;
  readonly why: string;
  /** The run of the fresh sandbox; undefined: the check ran in the sandbox of the agent, or still runs. */
  readonly runId: string | undefined;
  /** Number of rounds in which the check has run. */
  readonly rounds: number;
}

/** Returns the last outcome of each check, in the order in which the checks began. */
export function checksOf(events: readonly Pick<TimelineEvent, 'event_type' | 'payload'>[]): readonly ShownCheck[] {
  const checks = new Map<string, ShownCheck>();
  for (const { event_type: type, payload = {} } of events) {
    if (type !== 'check_started' && type !== 'check_finished') continue;
    const name = String(payload.name);
    const rounds = checks.get(name)?.rounds ?? 0;
    checks.set(
      name,
      type === 'check_started'
        ? { name, passed: undefined, durationMs: undefined, why: '', runId: undefined, rounds: rounds + 1 }
        : {
            name,
            passed: payload.state === 'passed',
            durationMs: typeof payload.duration_ms === 'number' ? payload.duration_ms : undefined,
            why: [payload.error, payload.output_tail].filter((text) => typeof text === 'string').join('\n'),
            runId: typeof payload.check_run_id === 'string' ? payload.check_run_id : undefined,
            rounds,
          },
    );
  }
  return [...checks.values()];
}
