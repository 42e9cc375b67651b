/** Causes the planned faults in an installation. */
import { setTimeout as delay } from 'node:timers/promises';
import { agentProcesses } from '../support/agents-at-work.ts';
import type { Installation } from './installation.ts';
import { deafen, fillDisk, mendLink, slowDown, unplug } from './network.ts';
import type { Fault } from './plan.ts';
import { trySignal } from './programs.ts';

/**
 * Begins and ends each fault at its planned time. Calls `say` when a fault begins. Resolves to the number of faults of each
 * kind when the last fault has ended.
 */
export async function inflict(
  installation: Installation,
  faults: readonly Fault[],
  say: (line: string) => void,
): Promise<Record<string, number>> {
  const beganAt = performance.now();
  const counts: Record<string, number> = {};
  const one = async (fault: Fault) => {
    await delay(Math.max(0, beganAt + fault.atMs - performance.now()));
    const name = nameOf(fault);
    say(`${(fault.atMs / 1000).toFixed(1)} s: ${name} for ${(fault.forMs / 1000).toFixed(1)} s`);
    const end = await begin(installation, fault);
    if (end === undefined) return;
    const kind = fault.kind === 'kill agent' ? fault.kind : `${fault.kind} ${fault.node.replace(/(?<=e|r)\d$/, '')}`;
    counts[kind] = (counts[kind] ?? 0) + 1;
    await delay(fault.forMs);
    end();
  };
  await Promise.all(faults.map(one));
  return counts;
}

const nameOf = ({ kind, node, peer }: Fault) =>
  kind === 'deafen' ? `${node} does not hear ${peer}` : kind === 'kill agent' ? kind : `${kind} ${node}`;

/** Begins a fault. Returns a function that ends the fault, or undefined if the process to kill does not run. */
async function begin(installation: Installation, fault: Fault): Promise<(() => void) | undefined> {
  if (fault.kind === 'kill agent') {
    const agents = agentProcesses(() => true);
    const agent = agents[Math.floor(fault.choice * agents.length)];
    if (agent === undefined) return undefined;
    trySignal(agent.pid, 'SIGKILL');
    return () => undefined;
  }
  const program = installation.program(fault.node);
  const { node } = program;
  switch (fault.kind) {
    case 'kill':
      if (program.pid() === undefined) return undefined;
      await program.kill(fault.forMs);
      return () => undefined;
    case 'stall':
      program.stall();
      return program.proceed;
    case 'unplug':
      unplug(node);
      return () => mendLink(node);
    case 'deafen':
      deafen(node, installation.program(fault.peer).node);
      return () => mendLink(node);
    case 'slow':
      slowDown(node);
      return () => mendLink(node);
    case 'full':
      return fillDisk(node);
  }
}
