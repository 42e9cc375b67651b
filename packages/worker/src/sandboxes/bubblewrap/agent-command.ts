import { harnessFolderInside } from '@runyard/contract/agent/harness-presets/presets';
import { agentProgram, readableAgentProgram } from '../../runtime/agent-program.ts';
import { baseEnvironment, madeForSandbox } from '../base-environment.ts';
import type { Gvisor } from '../gvisor/find-gvisor.ts';
import { inside, runTokenDescriptor } from './arguments.ts';

/**
 * Returns the command of the agent program inside a sandbox. Without gVisor, the program's file is unreadable, so that other processes
 * cannot trace the agent. gVisor reads a program with the rights of the sandbox's user, so it cannot start an unreadable file. There
 * the agent is protected in another way: gVisor's kernel lets a process trace only its own descendants.
 */
export function agentCommand(args: readonly string[], gvisor: Gvisor | undefined): string[] {
  const program = gvisor === undefined ? agentProgram(inside.runtime) : readableAgentProgram(inside.runtime);
  return [...program, ...args];
}

/** Returns the whole environment of the agent: `env` and the variables that every program expects. */
export function agentEnvironment(env: Readonly<Record<string, string>>): Record<string, string> {
  return {
    ...baseEnvironment(inside.runtime, inside.home, harnessFolderInside),
    RUNYARD_RELAY_SOCKET: inside.relaySocket,
    RUNYARD_RUN_TOKEN_FD: String(runTokenDescriptor),
    ...madeForSandbox,
    ...env,
  };
}
