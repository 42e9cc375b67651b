import path from 'node:path';

/** File of the agent's own Node in a runtime. */
export const agentNode = 'agent/node';

/**
 * Returns the command that starts the agent of a runtime; its arguments follow.
 *
 * No command of the run may act as the agent, although it has the same user. The file of the agent's Node can be executed but not
 * read by that user, and the kernel lets nobody without privileges trace, or read the memory, environment and
 * descriptors of, a process with such a program (`would_dump` in the kernel's fs/exec.c, ptrace(2) on "dumpable"). The flag
 * keeps SIGUSR1 from opening Node's inspector, which evaluates whatever a client sends.
 */
export function agentProgram(runtime: string): string[] {
  return [path.join(runtime, agentNode), '--disable-sigusr1', path.join(runtime, 'agent/main.mjs')];
}

/** The same with a Node that can be read, so that the worker finds the agent by its environment. Commands could read the worker itself there. */
export function readableAgentProgram(runtime: string): string[] {
  return [path.join(runtime, 'node'), ...agentProgram(runtime).slice(1)];
}
