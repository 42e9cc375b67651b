import type { Sandbox } from '../sandboxes/sandbox.ts';
import type { Ending, ExecutionName } from './outcome.ts';

/** An execution that has a sandbox in this worker, or is getting one. */
export interface Execution {
  readonly name: ExecutionName;
  /** Assignment that started it: the service may take an execution back and assign it again. */
  readonly assignmentId: string | undefined;
  /** Aborts the creation of the sandbox. */
  readonly creation: AbortController;
  sandbox?: Pick<Sandbox, 'kill' | 'rest'>;
  /** True once its agent was started. */
  hasStarted: boolean;
  /** Set once the worker itself ends the execution. */
  ending?: Ending;
  /** True while its agent waits for a follow-up; in this state, it takes no slot. */
  idle: boolean;
}

/** Records why the execution ends; the first reason stays. Stops the creation of its sandbox, but does not kill an existing sandbox. */
export function markEnding(execution: Execution, ending: Ending): void {
  execution.ending ??= ending;
  execution.creation.abort();
}
