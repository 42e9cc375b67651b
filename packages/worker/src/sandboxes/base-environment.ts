/** Tells the agent that its working folder and `HOME` were created for this run, so that it may send their contents to the service. */
export const madeForRun = { RUNYARD_RUN_FOLDERS: 'own' } as const;

/**
 * Returns the variables that every program of an agent expects. `runtime`, `home` and `harnessDir` are paths as the agent sees
 * them.
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
