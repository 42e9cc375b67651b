/**
 * Returns the run whose agent a process is, from its arguments as /proc has them; undefined: it is no agent at work. An agent that waited
 * for its run names it in its title.
 */
export function runOfAgent(cmdline: string): string | undefined {
  if (!/^(agent run |[^\0]*node\0)/.test(cmdline)) return undefined;
  return /[\0 ]--task-id[\0 ]([^\0 ]+)/.exec(cmdline)?.[1];
}
