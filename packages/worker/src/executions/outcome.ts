import { lastPart } from '@runyard/contract/wire/shorten';
import type { WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import { SandboxError, type SandboxExit } from '../sandboxes/sandbox.ts';

/** The ids that name an execution in messages to the service. */
export interface ExecutionName {
  readonly task_id: string;
  readonly execution_id: string;
}

export type TerminalMessage = Extract<WorkerMessage, { type: 'task_completed' | 'task_failed' }>;

/** Reasons for which the worker itself ends an execution. */
export type Ending = 'cancelled' | 'worker_stopped';

/** A message contains at most this number of characters from the end of the agent's output. */
const messageBytes = 4000;

function withOutput(message: string, tail: string): string {
  const text = tail.trim();
  return text === '' ? message : `${message}\nEnd of the agent's output:\n${lastPart(text, messageBytes)}`;
}

function failed(
  name: ExecutionName,
  phase: 'prepare' | 'spawn' | 'run',
  reason: string,
  message: string,
  exitCode?: number,
): TerminalMessage {
  return {
    type: 'task_failed',
    data: {
      ...name,
      message,
      failure_reason: reason,
      failure: { phase, reason },
      ...(exitCode === undefined ? {} : { exit_code: exitCode }),
    },
  };
}

/** Returns the message about a sandbox that was not created or did not start. */
export function failureMessage(name: ExecutionName, error: unknown): TerminalMessage {
  if (error instanceof SandboxError) return failed(name, error.phase, error.reason, error.message);
  return failed(
    name,
    'prepare',
    'worker_error',
    `the worker could not run it: ${(error as Error).message}; see the worker's log`,
  );
}

/** Returns the message about a cancelled execution. Must be sent only when all its processes have ended. */
export function cancelledMessage(name: ExecutionName): TerminalMessage {
  return {
    type: 'task_completed',
    data: { ...name, message: 'The execution was cancelled.', task_state: 'CANCELLED' },
  };
}

/** Returns the message about an execution that ended because the worker was stopped. */
export function stoppedMessage(name: ExecutionName, exitCode?: number): TerminalMessage {
  return failed(
    name,
    'run',
    'worker_stopped',
    'The worker was stopped while the agent was at work. Run it again when the worker is back.',
    exitCode,
  );
}

/** Returns the message about an agent that ended. `memoryMb` is the memory limit of its sandbox. */
export function exitMessage(
  name: ExecutionName,
  exit: SandboxExit,
  ending: Ending | undefined,
  memoryMb: number,
): TerminalMessage {
  const { exitCode } = exit;
  if (ending === 'cancelled') return cancelledMessage(name);
  if (exit.verdict !== undefined) {
    return failed(name, 'run', exit.verdict.reason, exit.verdict.message, exitCode);
  }
  if (exitCode === 0) return { type: 'task_completed', data: { ...name, message: 'The agent ended.' } };
  if (ending === 'worker_stopped') return stoppedMessage(name, exitCode);
  if (exit.outOfMemory) {
    const message = `The sandbox used up its ${memoryMb} MB of memory and the kernel ended a process in it. Let the agent use less, or raise RUNYARD_SANDBOX_MEMORY_MB.`;
    return failed(name, 'run', 'out_of_memory', withOutput(message, exit.outputTail), exitCode);
  }
  const how = exitCode > 128 ? `was ended by signal ${exitCode - 128}` : `ended with exit code ${exitCode}`;
  return failed(name, 'run', 'agent_exited', withOutput(`The agent process ${how}.`, exit.outputTail), exitCode);
}
