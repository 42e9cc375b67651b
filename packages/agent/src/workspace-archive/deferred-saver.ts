import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { fs } from '../builtin-modules.ts';
import { type ArchivedFolder, archivedFolders, foreignFolders } from './archived-folders.ts';
import type { CheckpointMarks, SaverOptions, WorkspaceSaver } from './workspace-saver.ts';

export interface DeferredSaverOptions extends Omit<SaverOptions, 'folders' | 'maxBytes' | 'restored'> {
  /** True: the working folder and the home were created for this run. Otherwise their contents must not be sent. */
  readonly ownFolders: boolean;
}

/**
 * Saves the workspace after turns. The code of the real saver is loaded only at the end of the first turn, so that it does not delay the
 * start of the run.
 */
export interface DeferredSaver {
  /**
   * Called when the workspace is prepared, so that it can be saved. `restored`: the workspace comes from an earlier execution. `isSaved`:
   * the archive of this earlier execution has all files of the workspace.
   */
  begin(
    task: Pick<AgentTask, 'max_workspace_bytes'>,
    of: { readonly restored: boolean; readonly isSaved: boolean },
  ): Promise<void>;
  /** Returns true if the folders to save are empty and were never saved before. */
  isEmpty(): boolean;
  /** Records that the service knows that the folders were empty after this turn. */
  noteEmpty(turn: number): void;
  /** Saves the workspace as it is after this turn. Does nothing before `begin`. Never rejects. */
  save(turn: number): Promise<void>;
  /** Saves the workspace as it is in the middle of this turn. Does nothing before `begin`. Rejects if the workspace was not saved. */
  checkpoint(turn: number, marks: CheckpointMarks): Promise<void>;
  /** Sends the files as they are in the middle of this turn. Does nothing before `begin`. Rejects if they were not sent. */
  showFiles(turn: number): Promise<void>;
  /** Keeps the snapshot of this turn, which is stored: `save` does not replace it. */
  keepSnapshot(turn: number): Promise<void>;
  /** Stops the current saving. Called when the next turn begins. */
  abort(): Promise<void>;
}

export function deferredSaver(options: DeferredSaverOptions): DeferredSaver {
  let saver: (() => Promise<WorkspaceSaver>) | undefined;
  /**
   * The folders, as long as nothing was saved. Undefined: an archive may exist, so the agent must save the folders even if they are empty.
   */
  let plain: readonly ArchivedFolder[] | undefined;
  let emptyTurn: number | undefined;
  const isEmpty = (): boolean =>
    plain?.every(({ path }) => isEmptyFolder(path)) === true &&
    options.handedOff().length === 0 &&
    options.session() === undefined;
  return {
    isEmpty,
    noteEmpty(turn) {
      emptyTurn = turn;
    },
    async begin({ max_workspace_bytes: maxBytes = 0 }, { restored, isSaved }) {
      const { workspace, ownFolders, env } = options;
      if (!ownFolders && maxBytes > 0) options.onNotSaved(foreignFolders);
      const folders = ownFolders ? archivedFolders(workspace, env.HOME) : undefined;
      if (maxBytes > 0 && !restored) plain = folders;
      const load = async () => {
        plain = undefined;
        const { workspaceSaver } = await import('./workspace-saver.ts');
        return workspaceSaver({ ...options, folders, maxBytes, restored });
      };
      let loaded: Promise<WorkspaceSaver> | undefined;
      saver = () => {
        loaded ??= load();
        return loaded;
      };
      if (isSaved) await (await saver()).markSaved();
    },
    async save(turn) {
      if (turn === emptyTurn && isEmpty()) return;
      await (await saver?.())?.save(turn);
    },
    async checkpoint(turn, marks) {
      await (await saver?.())?.checkpoint(turn, marks);
    },
    async showFiles(turn) {
      if (!isEmpty()) await (await saver?.())?.showFiles(turn);
    },
    async keepSnapshot(turn) {
      (await saver?.())?.keepSnapshot(turn);
    },
    async abort() {
      await (await saver?.())?.abort();
    },
  };
}

function isEmptyFolder(path: string): boolean {
  try {
    return fs.readdirSync(path).length === 0;
  } catch {
    return false;
  }
}
