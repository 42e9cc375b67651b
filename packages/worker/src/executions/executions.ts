import type { TaskAssignment, TaskCancellation, TaskIdle, WorkerMessage } from '@runyard/contract/worker-protocol';
import type { Logger } from 'pino';
import type { WorkMessage } from '../connection/connection.ts';
import type { Sandbox, SandboxBackend } from '../sandboxes/sandbox.ts';
import { agentLaunch } from './launch.ts';
import {
  cancelledMessage,
  type Ending,
  type ExecutionName,
  exitMessage,
  failureMessage,
  stoppedMessage,
  type TerminalMessage,
} from './outcome.ts';

/** What an agent has after a cancellation when the message does not say. */
const defaultGraceMs = 5000;
/** Time between SIGTERM and SIGKILL when the worker itself must end. */
const stopGraceMs = 3000;
/** Ended executions that are remembered, so that a late repetition of an assignment does not run one a second time. */
const remembered = 1000;

export interface ExecutionsOptions {
  readonly backend: SandboxBackend;
  readonly slots: number;
  readonly serviceRoot: string;
  readonly workerName: string;
  readonly memoryMb: number;
  readonly send: (message: WorkerMessage) => void;
  /** Called whenever the last execution ended. */
  readonly onIdle: () => void;
  readonly log: Logger;
}

interface Execution {
  readonly name: ExecutionName;
  /** Of which hand-over it is: the service may take one back and hand the same execution over again. */
  readonly assignmentId: string | undefined;
  sandbox?: Sandbox;
  ending?: Ending;
  /** Its agent waits for a follow-up: it holds no slot. */
  idle: boolean;
}

/** An execution as a hello lists it. */
export interface HeldExecution extends ExecutionName {
  readonly idle?: boolean;
}

/** The executions of this process, at most one sandbox for each. */
export interface Executions {
  handle(message: WorkMessage): void;
  /** Executions that have a sandbox, or are getting one. */
  readonly held: () => readonly HeldExecution[];
  /** From now on every assignment is rejected. */
  drain(): void;
  readonly isDraining: () => boolean;
  /** Ends all of them: SIGTERM, and after 3 s everything is killed. */
  stopAll(): void;
}

export function createExecutions(options: ExecutionsOptions): Executions {
  const { log } = options;
  const live = new Map<string, Execution>();
  const ended = new Map<string, { assignmentId: string | undefined; message: TerminalMessage }>();
  let draining = false;

  const busy = (): number => [...live.values()].filter(({ idle }) => !idle).length;

  const finish = (execution: Execution, message: TerminalMessage): void => {
    const id = execution.name.execution_id;
    live.delete(id);
    ended.set(id, { assignmentId: execution.assignmentId, message });
    const [oldest] = ended.keys();
    if (ended.size > remembered && oldest !== undefined) ended.delete(oldest);
    log.info(
      {
        ...execution.name,
        type: message.type,
        reason: message.type === 'task_failed' ? message.data.failure_reason : undefined,
      },
      'execution ended',
    );
    options.send(message);
    if (live.size === 0) options.onIdle();
  };

  /** From the assignment to the end. Never rejects. */
  const carryOut = async (
    execution: Execution,
    assignment: TaskAssignment['data'],
    arrivedAt: number,
  ): Promise<TerminalMessage> => {
    const { name } = execution;
    if (assignment.docker_image !== undefined) return failureMessage(name, imageError(assignment.docker_image));
    const launch = agentLaunch(assignment, options.serviceRoot);
    if (!launch.ok) return failureMessage(name, new Error(launch.problem));
    let sandbox: Sandbox | undefined;
    try {
      sandbox = await options.backend.prepare();
      if (execution.ending !== undefined) return endedEarly(execution);
      execution.sandbox = sandbox;
      const { ended: exit } = await sandbox.spawn(launch.launch);
      const spawnMs = Math.round((performance.now() - arrivedAt) * 10) / 10;
      options.send({
        type: 'sandbox_ready',
        data: { ...name, backend: options.backend.describe().backend, spawn_ms: spawnMs },
      });
      log.info({ ...name, sandbox: sandbox.id, spawn_ms: spawnMs }, 'sandbox started');
      // Ended while it was being started: whoever asked for it found nothing to kill.
      if (execution.ending !== undefined) sandbox.kill('kill');
      const end = await exit;
      if (end.outputTail !== '')
        log.debug({ ...name, output: end.outputTail.slice(-2000) }, 'end of the agent’s output');
      return exitMessage(name, end, execution.ending, options.memoryMb);
    } catch (error) {
      log.error({ ...name, error: (error as Error).message }, 'the sandbox could not be started');
      return execution.ending === 'cancelled' ? cancelledMessage(name) : failureMessage(name, error);
    } finally {
      await sandbox?.dispose();
    }
  };

  const assign = (assignment: TaskAssignment['data'], arrivedAt: number): void => {
    const { task_id, execution_id } = assignment;
    const name = { task_id, execution_id };
    const current = live.get(execution_id);
    const before = ended.get(execution_id);
    const reject = (reason: string) => options.send({ type: 'task_rejected', data: { ...name, reason } });
    if (current !== undefined && current.assignmentId === assignment.assignment_id) {
      log.debug(name, 'assigned again while it runs; ignored');
    } else if (current !== undefined) {
      // Its agent was given up by the service; two sandboxes of one execution must not be at the same time.
      reject('a sandbox of an earlier assignment of this execution is still here');
      current.ending ??= 'cancelled';
      current.sandbox?.kill('kill');
    } else if (before !== undefined && before.assignmentId === assignment.assignment_id) options.send(before.message);
    else if (draining || busy() >= options.slots) {
      const reason = draining ? 'the worker is draining' : `all ${options.slots} slots are in use`;
      reject(reason);
    } else {
      const execution: Execution = { name, assignmentId: assignment.assignment_id, idle: false };
      live.set(execution_id, execution);
      options.send({ type: 'task_claimed', data: { ...name, worker_id: options.workerName } });
      void carryOut(execution, assignment, arrivedAt).then((message) => finish(execution, message));
    }
  };

  const cancel = (cancellation: TaskCancellation['data']): void => {
    for (const execution of live.values()) {
      const { task_id, execution_id } = execution.name;
      if (task_id !== cancellation.task_id || (cancellation.execution_id ?? execution_id) !== execution_id) continue;
      execution.ending ??= 'cancelled';
      log.info(execution.name, 'cancelled');
      // The agent hears of it from the service and may end by itself first.
      setTimeout(() => execution.sandbox?.kill('kill'), cancellation.grace_ms ?? defaultGraceMs).unref();
    }
  };

  const setIdle = ({ execution_id, idle }: TaskIdle['data']): void => {
    const execution = live.get(execution_id);
    if (execution !== undefined) execution.idle = idle;
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
    held: () => [...live.values()].map(({ name, idle }) => ({ ...name, ...(idle ? { idle } : {}) })),
    drain() {
      draining = true;
    },
    isDraining: () => draining,
    stopAll() {
      for (const execution of live.values()) {
        execution.ending ??= 'worker_stopped';
        execution.sandbox?.kill('terminate');
        setTimeout(() => execution.sandbox?.kill('kill'), stopGraceMs).unref();
      }
    },
  };
}

function endedEarly(execution: Execution): TerminalMessage {
  return execution.ending === 'cancelled' ? cancelledMessage(execution.name) : stoppedMessage(execution.name);
}

function imageError(image: string): Error {
  return new Error(
    `the environment names the image ${image}, but the docker backend is not available yet; remove the image from the environment`,
  );
}
