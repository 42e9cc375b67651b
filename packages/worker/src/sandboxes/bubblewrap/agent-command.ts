import { inside } from './arguments.ts';

/** Command of the agent program inside a sandbox. */
export function agentCommand(args: readonly string[]): string[] {
  return [`${inside.runtime}/node`, `${inside.runtime}/agent/main.mjs`, ...args];
}

/** Its whole environment: `env`, and what every program expects. */
export function agentEnvironment(env: Readonly<Record<string, string>>): Record<string, string> {
  return {
    PATH: `${inside.runtime}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
    HOME: inside.home,
    USER: 'agent',
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    NODE_COMPILE_CACHE: `${inside.runtime}/agent/cache`,
    RUNYARD_RELAY_SOCKET: inside.relaySocket,
    ...env,
  };
}
