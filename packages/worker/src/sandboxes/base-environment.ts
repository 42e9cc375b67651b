/** Tells the agent that its working folder and `HOME` were made for this run, so that it may send their contents to the service. */
export const madeForRun = { RUNYARD_RUN_FOLDERS: 'own' } as const;

/** Returns the variables that every program of an agent expects. `runtime` and `home` are paths as the agent sees them. */
export function baseEnvironment(runtime: string, home: string): Record<string, string> {
  return {
    PATH: `${runtime}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
    HOME: home,
    USER: 'agent',
    LANG: 'C.UTF-8',
    TERM: 'dumb',
  };
}
