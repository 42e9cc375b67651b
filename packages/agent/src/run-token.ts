import { fs } from './builtin-modules.ts';

/**
 * A shell script that starts the program in its arguments, with the run token in a pipe and not in the environment. The script makes
 * the pipe with a here-document, because a shell uses a pipe for a here-document of this size.
 */
const intoPipe = `exec 4<<END
$RUNYARD_RUN_TOKEN
END
unset RUNYARD_RUN_TOKEN WARP_API_KEY
export RUNYARD_RUN_TOKEN_FD=4
exec "$@"`;

/**
 * Reads the run token from the descriptor that `RUNYARD_RUN_TOKEN_FD` names, and closes the descriptor. Returns '' if the environment has
 * no token. oz-agent-worker gets the token in `WARP_API_KEY` too, so this variable is removed as well.
 *
 * Every process of the same user can read the start environment of a process in /proc/PID/environ, even after the process has deleted a
 * variable. Workers of other projects pass the token in the environment. In this case, this function does not return, but replaces the
 * agent's process with a new agent that reads the token from a pipe.
 */
export function takeRunToken(env: NodeJS.ProcessEnv): string {
  const { RUNYARD_RUN_TOKEN: exposed } = env;
  if (exposed !== undefined && exposed !== '') {
    const { execPath, execArgv, argv } = process;
    process.execve?.('/bin/sh', ['sh', '-c', intoPipe, 'sh', execPath, ...execArgv, ...argv.slice(1)], { ...env });
    throw new Error('This system cannot replace a process: pass the run token by a descriptor, RUNYARD_RUN_TOKEN_FD.');
  }
  return readDescriptor(env);
}

/**
 * Reads all text from the file descriptor whose number is in `RUNYARD_RUN_TOKEN_FD`, and closes the descriptor. Blocks until
 * the writer closes the other end of the pipe. Returns '' if the variable contains no number.
 */
export function readDescriptor({ RUNYARD_RUN_TOKEN_FD: descriptor }: NodeJS.ProcessEnv): string {
  if (descriptor === undefined || !/^\d{1,4}$/.test(descriptor)) return '';
  const text = fs.readFileSync(Number(descriptor), 'utf8').trim();
  fs.closeSync(Number(descriptor));
  return text;
}
