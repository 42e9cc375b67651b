import path from 'node:path';
import { startFile } from './bundle.ts';

/**
 * Flag of Node with which OpenSSL reads no configuration. A configuration could load libraries, and in a container the image provides the
 * configuration file. The flag has priority over the variable OPENSSL_CONF.
 */
export const withoutOpensslFile = '--openssl-config=/dev/null';

/**
 * Flags of the agent's Node. The first flag keeps SIGUSR1 from opening Node's inspector, which evaluates code of every client. A short run has little
 * work for V8's helper threads: with one instead of four, an agent that waited took 5 % less processor time. `--v8-pool-size` is a flag of Node, not
 * of V8: with another set of V8 flags, V8 would reject the compiled code.
 */
const flags = ['--disable-sigusr1', withoutOpensslFile, '--v8-pool-size=1'];

/** File of the agent's own Node in a runtime. */
export const agentNode = 'agent/node';

/**
 * Returns the command that starts the agent of a runtime; its arguments follow.
 *
 * A command of the run must not be able to act as the agent, although the same user runs both. So this user can execute the file of the
 * agent's Node but not read it. The kernel protects a process of an unreadable file: an unprivileged process cannot trace it or read its
 * memory, environment and descriptors (`would_dump` in the kernel's fs/exec.c, ptrace(2) on "dumpable").
 */
export function agentProgram(runtime: string): string[] {
  return [path.join(runtime, agentNode), ...flags, path.join(runtime, 'agent', startFile)];
}

/**
 * Returns the command with a readable Node, so that the worker can find the agent by its environment. The backend `none` uses it, because
 * commands could read the worker itself there anyway. gVisor needs it, because it cannot start an unreadable program.
 */
export function readableAgentProgram(runtime: string): string[] {
  return [path.join(runtime, 'node'), ...agentProgram(runtime).slice(1)];
}
