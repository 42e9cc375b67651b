import type { AgentEvent, AgentEventBody } from '@runyard/contract/runs/agent-events';
import { shorten } from '@runyard/contract/wire/shorten';
import { monotonicMs } from '../builtin-modules.ts';
import { newId } from '../new-id.ts';

type StepKind = Extract<AgentEvent, { type: 'setup_step_started' }>['kind'];

export interface StepResult {
  /** A more precise name of the step, if the name is known only when the step ends. */
  name?: string;
  exit_code?: number;
  output_tail?: string;
  error?: string;
}

/** Runs one step of the setup, and emits an event before and after it. Reports an error of the step and throws it again. */
export type SetupSteps = <T>(kind: StepKind, name: string, work: (result: StepResult) => Promise<T>) => Promise<T>;

export function setupSteps(emit: (event: AgentEventBody) => void): SetupSteps {
  return async (kind, name, work) => {
    const step = { step_id: newId(), kind, name: shorten(name, 500) };
    const started = monotonicMs();
    const result: StepResult = {};
    emit({ type: 'setup_step_started', ...step });
    try {
      return await work(result);
    } catch (error) {
      result.error ??= error instanceof Error ? error.message : String(error);
      throw error;
    } finally {
      const duration_ms = Math.round(monotonicMs() - started);
      const name = result.name === undefined ? step.name : shorten(result.name, 500);
      emit({ type: 'setup_step_finished', ...step, duration_ms, ...result, name });
    }
  };
}
