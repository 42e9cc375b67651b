import path from 'node:path';
import { startFile } from './bundle.ts';

/** File of the agent's own Node in a runtime. */
export const agentNode = 'agent/node';

/**
 * Returns the command that starts the agent of a runtime; its arguments follow.
 *
 * No command of the run may act as the agent, although both have the same user. That user can execute but not read the file of the
 * agent's Node, and the kernel lets no unprivileged process trace, or read the memory, environment and descriptors of, a process
 * with such a program (`would_dump` in the kernel's fs/exec.c, ptrace(2) on "dumpable"). The flag
 * keeps SIGUSR1 from opening Node's inspector, which evaluates whatever a client sends.
 */
export function agentProgram(runtime: string): string[] {
  return [path.join(runtime, agentNode), '--disable-sigusr1', path.join(runtime, 'agent', startFile)];
}

/** Returns the command with a readable Node, so that the worker can find the agent by its environment. For the backend `none`, where commands could read the worker itself anyway. */
export function readableAgentProgram(runtime: string): string[] {
  return [path.join(runtime, 'node'), ...agentProgram(runtime).slice(1)];
}
