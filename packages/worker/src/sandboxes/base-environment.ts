/** Tells the agent that its working folder and `HOME` were made for this run: what they hold may leave the machine. */
export const madeForRun = { RUNYARD_RUN_FOLDERS: 'own' } as const;

/** Variables that every program of an agent expects. `runtime` and `home` are where the agent sees them. */
export function baseEnvironment(runtime: string, home: string): Record<string, string> {
  return {
    PATH: `${runtime}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
    HOME: home,
    USER: 'agent',
    LANG: 'C.UTF-8',
    TERM: 'dumb',
  };
}
