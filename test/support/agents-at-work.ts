/** Finds the agents that run now in /proc, and runs of which two sandboxes are at work. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { runOfAgent } from './run-of-agent.ts';

export interface AgentProcess {
  readonly pid: number;
  readonly runId: string;
  /** The sandbox of the agent: each has a process namespace of its own, which also contains a fork of the agent. */
  readonly namespace: string;
}

type IsOurs = (runId: string) => boolean;

/** Returns the agent with this pid, if it belongs to one of these runs. */
function agentProcess(pid: number, isOurs: IsOurs): AgentProcess | undefined {
  try {
    const namespace = readlinkSync(`/proc/${pid}/ns/pid`);
    const runId = runOfAgent(readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
    return runId !== undefined && isOurs(runId) ? { pid, runId, namespace } : undefined;
  } catch {
    // The process ended while its arguments were read.
    return undefined;
  }
}

/** Agents that run now. */
export function agentProcesses(isOurs: IsOurs): AgentProcess[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((name) => agentProcess(Number(name), isOurs) ?? []);
}

/** Runs with two sandboxes at one time: the first was still alive after the second was seen. */
export function doubleRuns(isOurs: IsOurs): string[] {
  const agents = agentProcesses(isOurs);
  return agents.flatMap((first, index) => {
    const others = agents.slice(index + 1);
    const other = others.find(({ runId, namespace }) => runId === first.runId && namespace !== first.namespace);
    if (other === undefined) return [];
    const again = agentProcess(first.pid, isOurs);
    return again?.runId === first.runId && again.namespace === first.namespace ? [first.runId] : [];
  });
}
