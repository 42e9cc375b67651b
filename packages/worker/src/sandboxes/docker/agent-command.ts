import { harnessFolderInside } from '@runyard/contract/agent/harness-presets/presets';
import { agentProgram, readableAgentProgram } from '../../runtime/agent-program.ts';
import { baseEnvironment, madeForRun } from '../base-environment.ts';
import { inside } from '../bubblewrap/arguments.ts';

/** Descriptor from which the agent reads the run token: engines pass on no other one. */
const runTokenDescriptor = 0;

/** Returns the command of the agent program in a container. `readsPrograms`: the runtime cannot start a program that its user cannot read. */
export const agentCommand = (args: readonly string[], readsPrograms: boolean): string[] => [
  ...(readsPrograms ? readableAgentProgram(inside.runtime) : agentProgram(inside.runtime)),
  ...args,
];

/** Returns the agent's whole environment, besides what the image adds: `env` and what every program expects. */
export function agentEnvironment(env: Readonly<Record<string, string>>): Record<string, string> {
  return {
    ...baseEnvironment(inside.runtime, inside.home, harnessFolderInside),
    RUNYARD_RELAY_SOCKET: inside.relaySocket,
    RUNYARD_RUN_TOKEN_FD: String(runTokenDescriptor),
    ...madeForRun,
    ...env,
  };
}
