import { basename, isAbsolute, join } from 'node:path';
import { fs } from '../builtin-modules.ts';

/** The folders that a run works in. */
export interface RunFolders {
  /** Working folder of all processes that the run starts. */
  readonly workspace: string;
  /** `HOME` of all processes that the run starts. */
  readonly home: string;
  /**
   * True: both folders were created only for this run. The agent sends only the contents of such folders to the service.
   */
  readonly own: boolean;
  /** Removes folders that `openRunFolders` created outside the working folder. */
  remove(): void;
}

export interface RunFoldersRequest {
  /** Folder in which the worker started the agent. */
  cwd: string;
  runId: string;
  env: Readonly<Record<string, string | undefined>>;
  temporaryFolder: string;
}

/** Files that `oz-agent-worker` puts into the folder of a run. */
const ofWorker = /^(oz-env-.*|\.gitconfig)$/;

/**
 * Returns the folders of a run. Runyard's worker creates the working folder and `HOME` for each run and sets `RUNYARD_RUN_FOLDERS=own`.
 * Other workers may start the agent in any folder, with the home of the machine's user:
 *
 * - In an empty folder with the name of the run, such as `oz-agent-worker` makes, the agent creates the folders `workspace` and `home`.
 * - In any other folder, the run works in the folder itself, but no content of the folder is sent. The home is a new temporary folder.
 *
 * `RUNYARD_AGENT_HOME` names another home. The contents of this home are not sent either.
 */
export function openRunFolders({ cwd, runId, env, temporaryFolder }: RunFoldersRequest): RunFolders {
  const nothing = () => {};
  const { HOME: home = '', RUNYARD_AGENT_HOME: named = '' } = env;
  if (env.RUNYARD_RUN_FOLDERS === 'own' && isAbsolute(home))
    return { workspace: cwd, home, own: true, remove: nothing };
  if (isAbsolute(named)) return { workspace: cwd, home: named, own: false, remove: nothing };
  if (basename(cwd) === runId && fs.readdirSync(cwd).every((name) => ofWorker.test(name))) {
    const [workspace, ownHome] = [join(cwd, 'workspace'), join(cwd, 'home')];
    for (const folder of [workspace, ownHome]) fs.mkdirSync(folder, { mode: 0o700 });
    return { workspace, home: ownHome, own: true, remove: nothing };
  }
  const homeFolder = fs.mkdtempSync(join(temporaryFolder, 'runyard-home-'));
  return {
    workspace: cwd,
    home: homeFolder,
    own: false,
    remove: () => fs.rmSync(homeFolder, { recursive: true, force: true }),
  };
}

/** Returns whether processes, network and writable file systems belong to this run alone. Workers set the variable, except with `none`. */
export const isSeparateSandbox = (env: Readonly<Record<string, string | undefined>>): boolean =>
  env.RUNYARD_SEPARATE_SANDBOX === '1';
