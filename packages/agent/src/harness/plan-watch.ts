import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import { monotonicMs } from '../builtin-modules.ts';
import type { PlanGuard } from '../workspace/plan-guard.ts';

/** Finds out whether a turn with the mode `plan` changes its workspace. */
export interface PlanWatch {
  /** True during a turn with the mode `plan`. */
  readonly isPlanning: boolean;
  /** Path of the first change in this turn. */
  readonly changed: string | undefined;
  /** Forgets the changes of earlier turns. */
  startTurn(): void;
  /** Called before the prompt of a turn is sent. */
  begin(isPlan: boolean): Promise<void>;
  /** Called with each event of the turn: an action may have changed something. */
  observe(event: AgentEventBody): void;
  /** Checks the workspace a last time. */
  endTurn(): Promise<void>;
  /** Ends the mode. */
  end(): void;
}

/** `onChanged` is called when a check finds a change. */
export function watchPlan(guard: PlanGuard | undefined, onChanged: () => void): PlanWatch {
  let isPlanning = false;
  let changed: string | undefined;
  let checking: Promise<void> | undefined;
  /** No check begins before this time, so that checks of a large workspace take at most a fifth of the turn. */
  let nextCheckMs = 0;

  /** Looks for a change. Calls during a check cause no further check: the end of the turn checks again. */
  function check(): Promise<void> {
    checking ??= (async () => {
      const began = monotonicMs();
      changed ??= await guard?.findChange();
      nextCheckMs = monotonicMs() + 4 * (monotonicMs() - began);
      if (changed !== undefined) onChanged();
    })().finally(() => {
      checking = undefined;
    });
    return checking;
  }

  return {
    get isPlanning() {
      return isPlanning;
    },
    get changed() {
      return changed;
    },
    startTurn() {
      changed = undefined;
      nextCheckMs = 0;
    },
    async begin(isPlan) {
      if (isPlan) await guard?.begin();
      isPlanning = isPlan;
    },
    observe(event) {
      if (isPlanning && event.type === 'action_result' && monotonicMs() >= nextCheckMs) void check();
    },
    async endTurn() {
      if (!isPlanning) return;
      await checking;
      await check();
    },
    end() {
      isPlanning = false;
    },
  };
}
