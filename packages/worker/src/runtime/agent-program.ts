import path from 'node:path';

/** Name of the file in a bundle that starts the program. */
export const startFile = 'main.cjs';

/**
 * With this flag of Node, OpenSSL reads no configuration file. In a container, the configuration file comes from the image and could
 * load libraries of the image. The flag has priority over the variable OPENSSL_CONF.
 */
export const withoutOpensslFile = '--openssl-config=/dev/null';

/**
 * Flags of the agent's Node. `--disable-sigusr1` is needed because SIGUSR1 would open Node's inspector, which runs any code that a client
 * sends. `--v8-pool-size=1` starts one helper thread of V8 instead of four: a short run has little work for these threads, and with one
 * thread an agent that waits for its run needs 5 % less processor time. This is a flag of Node. A flag of V8 itself would not be possible,
 * because V8 rejects stored compiled code that was made without the flag.
 */
const flags = ['--disable-sigusr1', withoutOpensslFile, '--v8-pool-size=1'];

/** Path of the agent's own Node in a runtime folder. */
export const agentNode = 'agent/node';

/**
 * Path of the shell in a runtime folder that is the first process of a sandbox. Like the agent's Node, its file is unreadable: a command of
 * the run could otherwise move its program into the first process, which is never frozen and ends last.
 */
export const initShell = 'agent/sh';

/**
 * Returns the beginning of the command that starts the agent of a runtime folder. The caller adds the arguments of the agent.
 *
 * A command of the run must not be able to act as the agent, although the same user runs both. So this user can execute the file of
 * the agent's Node, but cannot read this file. The kernel protects a process whose program file is unreadable: an unprivileged process
 * cannot trace the protected process or read its memory, environment and descriptors (`would_dump` in the kernel's fs/exec.c,
 * ptrace(2) on "dumpable").
 */
export function agentProgram(runtime: string): string[] {
  return [path.join(runtime, agentNode), ...flags, path.join(runtime, 'agent', startFile)];
}

/**
 * Returns the same command with a Node whose file is readable. So the worker can read the environment of the agent, and finds the agent by
 * a variable in it. The backend `none` uses this command, because this backend does not protect the agent anyway: commands of the run could
 * even read the memory of the worker. gVisor needs it, because gVisor cannot start a program whose file is unreadable.
 */
export function readableAgentProgram(runtime: string): string[] {
  return [path.join(runtime, 'node'), ...agentProgram(runtime).slice(1)];
}
