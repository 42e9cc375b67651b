/**
 * Returns the id of the run of a process, from its arguments in /proc, or undefined if the process is not an agent at work.
 * An agent that waited for its run names the run in its title.
 */
export function runOfAgent(cmdline: string): string | undefined {
  if (!/^(agent run |[^\0]*node\0)/.test(cmdline)) return undefined;
  return /[\0 ]--task-id[\0 ]([^\0 ]+)/.exec(cmdline)?.[1];
}
