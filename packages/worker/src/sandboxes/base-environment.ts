/**
 * This variable tells the agent that its working folder and `HOME` were created for this run. So the agent may send the contents of these
 * folders to the service.
 */
export const madeForRun = { RUNYARD_RUN_FOLDERS: 'own' } as const;

/**
 * These variables also tell the agent that processes, network and all writable file systems belong to this run. So the agent may end all
 * processes that it sees.
 */
export const madeForSandbox = { ...madeForRun, RUNYARD_SEPARATE_SANDBOX: '1' } as const;

/**
 * Returns the environment variables that the agent and its programs expect. `runtime`, `home` and `harnessDir` are paths inside of the
 * sandbox.
 */
export function baseEnvironment(runtime: string, home: string, harnessDir?: string): Record<string, string> {
  const harnesses = harnessDir === undefined ? '' : `${harnessDir}/bin:`;
  return {
    PATH: `${runtime}/bin:${harnesses}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
    HOME: home,
    USER: 'agent',
    LANG: 'C.UTF-8',
    TERM: 'dumb',
  };
}
