import type { Sandbox } from '../sandboxes/sandbox.ts';
import type { Ending, ExecutionName } from './outcome.ts';

/** An execution that has a sandbox in this worker, or for which a sandbox is being made. */
export interface Execution {
  readonly name: ExecutionName;
  /** Id of the assignment that started this execution: the service may take an execution back and assign it again. */
  readonly assignmentId: string | undefined;
  /** Aborts the creation of the sandbox. */
  readonly creation: AbortController;
  sandbox?: Pick<Sandbox, 'kill' | 'rest'>;
  /** True once its agent was started. */
  hasStarted: boolean;
  /** Why the worker ends the execution; absent if the worker does not end it. */
  ending?: Ending;
  /** True while its agent waits for a follow-up; in this state, it takes no slot. */
  idle: boolean;
}

/**
 * Records why the execution ends; a later call does not change the reason. Stops the creation of the sandbox, but does not kill an existing
 * sandbox.
 */
export function markEnding(execution: Execution, ending: Ending): void {
  execution.ending ??= ending;
  execution.creation.abort();
}
