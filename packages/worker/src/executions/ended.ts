import type { TerminalMessage } from './outcome.ts';

/** Ended executions that are remembered. */
const longest = 1000;

/** An execution that ended in this worker. */
interface Ended {
  readonly assignmentId: string | undefined;
  /** The report about the end that was sent to the service. */
  readonly message: TerminalMessage;
}

/** Remembers ended executions by their ids, so that a repeated assignment does not run one a second time. */
export interface EndedExecutions {
  add(executionId: string, ended: Ended): void;
  find(executionId: string): Ended | undefined;
}

export function createEndedExecutions(): EndedExecutions {
  const byId = new Map<string, Ended>();
  return {
    add(executionId, ended) {
      byId.set(executionId, ended);
      const [oldest] = byId.keys();
      if (byId.size > longest && oldest !== undefined) byId.delete(oldest);
    },
    find: (executionId) => byId.get(executionId),
  };
}
