/** Finds running agents in /proc, and runs for which two sandboxes work at the same time. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { runOfAgent } from './run-of-agent.ts';

export interface AgentProcess {
  readonly pid: number;
  readonly runId: string;
  /** The process namespace, which identifies the sandbox of the agent. A fork of the agent is in the same namespace. */
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
    // The process ended while this function read the arguments.
    return undefined;
  }
}

/** Agents that run now. */
export function agentProcesses(isOurs: IsOurs): AgentProcess[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((name) => agentProcess(Number(name), isOurs) ?? []);
}

/**
 * Returns the runs with two sandboxes at the same time: the agent of the first sandbox was still alive after the agent of the second
 * one was found.
 */
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
