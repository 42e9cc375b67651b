/**
 * Returns the id of the run for which a process works, or undefined if the process is not an agent with a run. Reads the id from the
 * arguments in /proc. An agent that was started before it got a run has that run's arguments in its process title.
 */
export function runOfAgent(cmdline: string): string | undefined {
  if (!/^(agent run |[^\0]*node\0)/.test(cmdline)) return undefined;
  return /[\0 ]--task-id[\0 ]([^\0 ]+)/.exec(cmdline)?.[1];
}
