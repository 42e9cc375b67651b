import { fs } from './builtin-modules.ts';

/**
 * Starts the program in its arguments again, with the run token in a pipe instead of the environment. A shell keeps a
 * here-document of this size in a pipe.
 */
const intoPipe = `exec 4<<END
$RUNYARD_RUN_TOKEN
END
unset RUNYARD_RUN_TOKEN
export RUNYARD_RUN_TOKEN_FD=4
exec "$@"`;

/**
 * Takes the run token from the descriptor that `RUNYARD_RUN_TOKEN_FD` names, and closes it. Empty where there is none.
 *
 * The environment that a process was started with stays readable in /proc/PID/environ for every process of its user, whatever the
 * process deletes later. So an agent that finds the token in its environment, where other workers leave it, replaces itself
 * with an agent that gets it from a pipe; the call does not return then.
 */
export function takeRunToken(env: NodeJS.ProcessEnv): string {
  const { RUNYARD_RUN_TOKEN: exposed, RUNYARD_RUN_TOKEN_FD: descriptor } = env;
  if (exposed !== undefined && exposed !== '') {
    const { execPath, execArgv, argv } = process;
    process.execve?.('/bin/sh', ['sh', '-c', intoPipe, 'sh', execPath, ...execArgv, ...argv.slice(1)], { ...env });
    throw new Error('This system cannot replace a process: give the run token by a descriptor, RUNYARD_RUN_TOKEN_FD.');
  }
  if (descriptor === undefined || !/^\d{1,4}$/.test(descriptor)) return '';
  const token = fs.readFileSync(Number(descriptor), 'utf8').trim();
  fs.closeSync(Number(descriptor));
  return token;
}
