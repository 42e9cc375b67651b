import { harnessFolderInside } from '@runyard/contract/harness-presets/presets';
import { agentProgram } from '../../runtime/agent-program.ts';
import { baseEnvironment, madeForRun } from '../base-environment.ts';
import { inside, runTokenDescriptor } from './arguments.ts';

/** Returns the command of the agent program inside a sandbox. */
export function agentCommand(args: readonly string[]): string[] {
  return [...agentProgram(inside.runtime), ...args];
}

/** Returns the agent's whole environment: `env` and what every program expects. */
export function agentEnvironment(env: Readonly<Record<string, string>>): Record<string, string> {
  return {
    ...baseEnvironment(inside.runtime, inside.home, harnessFolderInside),
    NODE_COMPILE_CACHE: `${inside.runtime}/agent/cache`,
    RUNYARD_RELAY_SOCKET: inside.relaySocket,
    RUNYARD_RUN_TOKEN_FD: String(runTokenDescriptor),
    ...madeForRun,
    ...env,
  };
}
