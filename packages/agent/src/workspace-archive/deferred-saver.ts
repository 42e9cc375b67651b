import type { AgentTask } from '@runyard/contract/agent-protocol';
import { archivedFolders, foreignFolders } from './archived-folders.ts';
import type { CheckpointMarks, SaverOptions, WorkspaceSaver } from './workspace-saver.ts';

export interface DeferredSaverOptions extends Omit<SaverOptions, 'folders' | 'maxBytes' | 'restored'> {
  /** True: working folder and home were made for this run. Only then they may be sent. */
  readonly ownFolders: boolean;
}

/** Saves the workspace after turns. Its code is loaded at the end of the first turn, so that it does not slow the start. */
export interface DeferredSaver {
  /** The workspace is prepared: from now on there is something to save. */
  begin(task: Pick<AgentTask, 'max_workspace_bytes'>, restored: boolean): Promise<void>;
  /** Saves the workspace as it is after this turn. Does nothing before `begin`. Never rejects. */
  save(turn: number): Promise<void>;
  /** Saves the workspace as it is in the middle of this turn. Does nothing before `begin`. Rejects where it was not saved. */
  checkpoint(turn: number, marks: CheckpointMarks): Promise<void>;
  /** Stops saving, because the next turn begins. */
  abort(): Promise<void>;
}

export function deferredSaver(options: DeferredSaverOptions): DeferredSaver {
  let saver: (() => Promise<WorkspaceSaver>) | undefined;
  return {
    async begin({ max_workspace_bytes: maxBytes = 0 }, restored) {
      const { workspace, ownFolders, env } = options;
      if (!ownFolders && maxBytes > 0) options.onNotSaved(foreignFolders);
      const load = async () => {
        const { workspaceSaver } = await import('./workspace-saver.ts');
        const folders = ownFolders ? archivedFolders(workspace, env.HOME) : undefined;
        return workspaceSaver({ ...options, folders, maxBytes, restored });
      };
      let loaded: Promise<WorkspaceSaver> | undefined;
      saver = () => {
        loaded ??= load();
        return loaded;
      };
      if (restored) await (await saver()).markSaved();
    },
    async save(turn) {
      await (await saver?.())?.save(turn);
    },
    async checkpoint(turn, marks) {
      await (await saver?.())?.checkpoint(turn, marks);
    },
    async abort() {
      await (await saver?.())?.abort();
    },
  };
}
