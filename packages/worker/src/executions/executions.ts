import { setTimeout as sleep } from 'node:timers/promises';
import type {
  TaskAssignment,
  TaskCancellation,
  TaskIdle,
  WorkerHello,
} from '@runyard/contract/workers/worker-protocol';
import type { WorkMessage } from '../connection/connection.ts';
import type { Health } from '../health.ts';
import type { AdoptableSandbox } from '../sandboxes/backend-kind.ts';
import { type CarryOutOptions, carryOn, carryOut } from './carry-out.ts';
import { type Execution, markEnding } from './execution.ts';
import type { TerminalMessage } from './outcome.ts';

/** Maximum number of ended executions that are remembered. If there are more, the oldest one is forgotten. */
const longest = 1000;

/** An execution that ended in this worker. */
interface Ended {
  readonly assignmentId: string | undefined;
  /** The message about the end that was sent to the service. */
  readonly message: TerminalMessage;
}

/**
 * Remembers ended executions by their ids. So if the service sends an assignment again after the execution has ended, the worker does not
 * run the execution a second time.
 */
interface EndedExecutions {
  add(executionId: string, ended: Ended): void;
  find(executionId: string): Ended | undefined;
}

function createEndedExecutions(): EndedExecutions {
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

/** Time between a cancellation and the kill, if the cancellation message does not set this time. */
const defaultGraceMs = 5000;
/** Time between SIGTERM and SIGKILL when the worker must end all executions. */
const stopGraceMs = 3000;

export interface ExecutionsOptions extends CarryOutOptions {
  readonly health: Pick<Health, 'problem' | 'doubt'>;
  readonly slots: number;
  readonly workerName: string;
  /** Called each time an execution has ended and no other execution is left. */
  readonly onIdle: () => void;
}

/** The executions of this worker process. Each execution has at most one sandbox. */
export interface Executions {
  handle(message: WorkMessage): void;
  /** Returns the executions that have a sandbox or for which a sandbox is being made, in the form in which the hello message lists them. */
  readonly list: () => WorkerHello['data']['executions'];
  /**
   * Continues executions whose sandboxes were started by an earlier worker process. Must be called before the first message of the
   * service is handled.
   */
  adopt(left: readonly AdoptableSandbox[]): void;
  /** Resolves when every execution has either started its agent or ended. */
  settled(): Promise<void>;
  /** Rejects every assignment from now on. */
  drain(): void;
  readonly isDraining: () => boolean;
  /** Ends all executions: sends SIGTERM to their processes, and 3 s later SIGKILL to processes that are left. */
  stopAll(): void;
}

/** Creates the record of this worker's executions, which handles the messages of the service about executions. */
export function createExecutions(options: ExecutionsOptions): Executions {
  const { log } = options;
  const live = new Map<string, Execution>();
  const ended = createEndedExecutions();
  let draining = false;

  const slotsInUse = (): number => [...live.values()].filter(({ idle }) => !idle).length;

  const finish = (execution: Execution, message: TerminalMessage): void => {
    const id = execution.name.execution_id;
    live.delete(id);
    ended.add(id, { assignmentId: execution.assignmentId, message });
    const reason = message.type === 'task_failed' ? message.data.failure_reason : undefined;
    log.info({ ...execution.name, type: message.type, reason }, 'execution ended');
    options.send(message);
    if (message.type === 'task_failed' && !execution.hasStarted) options.health.doubt();
    if (live.size === 0) options.onIdle();
  };

  const assign = (assignment: TaskAssignment['data'], arrivedAt: number): void => {
    const { task_id, execution_id, assignment_id: assignmentId } = assignment;
    const name = { task_id, execution_id };
    const current = live.get(execution_id);
    const before = ended.find(execution_id);
    const reject = (reason: string) => options.send({ type: 'task_rejected', data: { ...name, reason } });
    if (current !== undefined && current.assignmentId === assignmentId) {
      log.debug(name, 'assigned again while it runs; ignored');
    } else if (current !== undefined) {
      // The service has taken the earlier assignment back, but its sandbox still runs. Rejects the new assignment and kills that sandbox,
      // because one execution must not have two sandboxes at the same time.
      reject('a sandbox of an earlier assignment of this execution is still here');
      markEnding(current, 'cancelled');
      current.sandbox?.kill('kill');
    } else if (before !== undefined && before.assignmentId === assignmentId) {
      options.send(before.message);
    } else if (draining) {
      reject('the worker is draining');
    } else if (options.health.problem() !== undefined) {
      reject(`the worker takes no new runs: ${options.health.problem()}`);
    } else if (slotsInUse() >= options.slots) {
      reject(`all ${options.slots} slots are in use`);
    } else {
      const execution: Execution = {
        name,
        assignmentId,
        creation: new AbortController(),
        hasStarted: false,
        idle: false,
      };
      live.set(execution_id, execution);
      options.send({ type: 'task_claimed', data: { ...name, worker_id: options.workerName } });
      void carryOut(options, execution, assignment, arrivedAt).then((message) => finish(execution, message));
    }
  };

  const cancel = (cancellation: TaskCancellation['data']): void => {
    for (const execution of live.values()) {
      const { task_id, execution_id } = execution.name;
      if (task_id !== cancellation.task_id || (cancellation.execution_id ?? execution_id) !== execution_id) continue;
      markEnding(execution, 'cancelled');
      log.info(execution.name, 'cancelled');
      // Waits before the kill, because the service also notifies the agent, and the agent should have time to end by itself.
      setTimeout(() => execution.sandbox?.kill('kill'), cancellation.grace_ms ?? defaultGraceMs).unref();
    }
  };

  const setIdle = ({ execution_id, idle, awaits }: TaskIdle['data']): void => {
    const execution = live.get(execution_id);
    if (execution === undefined) return;
    execution.idle = idle;
    execution.sandbox?.rest?.(idle, awaits);
  };

  return {
    handle(message) {
      switch (message.type) {
        case 'task_assignment':
          return assign(message.data, performance.now());
        case 'task_cancellation':
          return cancel(message.data);
        case 'task_idle':
          return setIdle(message.data);
      }
    },
    list: () => [...live.values()].map(({ name, idle }) => ({ ...name, ...(idle ? { idle } : {}) })),
    adopt(left) {
      for (const found of left) {
        const { execution: name, assignment_id: assignmentId } = found.record;
        const { sandbox } = found;
        const creation = new AbortController();
        const execution: Execution = { name, assignmentId, creation, sandbox, hasStarted: true, idle: false };
        live.set(name.execution_id, execution);
        void carryOn(options, execution, found).then((message) => finish(execution, message));
      }
    },
    async settled() {
      while ([...live.values()].some(({ hasStarted }) => !hasStarted)) await sleep(5);
    },
    drain() {
      draining = true;
    },
    isDraining: () => draining,
    stopAll() {
      for (const execution of live.values()) {
        markEnding(execution, 'worker_stopped');
        execution.sandbox?.kill('terminate');
        setTimeout(() => execution.sandbox?.kill('kill'), stopGraceMs).unref();
      }
    },
  };
}
