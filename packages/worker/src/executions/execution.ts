import type { Sandbox } from '../sandboxes/sandbox.ts';
import type { Ending, ExecutionName } from './outcome.ts';

/** An execution that has a sandbox in this worker, or for which a sandbox is being made. */
export interface Execution {
  readonly name: ExecutionName;
  /**
   * Id of the assignment that started this execution. The service may take an execution back and assign it to this worker again with
   * another id.
   */
  readonly assignmentId: string | undefined;
  /** Aborts the creation of the sandbox. */
  readonly creation: AbortController;
  sandbox?: Pick<Sandbox, 'kill' | 'rest'>;
  /** True after the agent of the execution was started. */
  hasStarted: boolean;
  /** Why the worker ends the execution. Absent while the worker has no reason to end it. */
  ending?: Ending;
  /** True while the agent of the execution waits for a follow-up. In this state, the execution takes no slot of the worker. */
  idle: boolean;
}

/**
 * Records why the worker ends the execution. A later call does not change the reason. Stops the creation of the sandbox if it is in
 * progress, but does not kill an existing sandbox.
 */
export function markEnding(execution: Execution, ending: Ending): void {
  execution.ending ??= ending;
  execution.creation.abort();
}
