import type { AgentTask } from '@runyard/contract/agent-protocol';
import type { ServiceClient } from '../service/client.ts';
import { archivedFolders, foreignFolders } from './archived-folders.ts';
import type { WorkspaceSaver } from './workspace-saver.ts';

export interface DeferredSaverOptions {
  client: Pick<ServiceClient, 'upload' | 'uploadSnapshot'>;
  workspace: string;
  /** Working folder and home were made for this run: only then they may be sent. */
  ownFolders: boolean;
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
  /** Files that the agent hands off, as of now. */
  declared: () => readonly string[];
  /** The harness's session, where it can load it again. */
  session: () => string | undefined;
  /** Something is not in the snapshot, and why. */
  onLeftOut: (what: string, reason: string) => void;
  /** The archive was not kept. */
  onNotKept: (reason: string) => void;
}

/** Keeps the workspace between turns. What it takes is loaded when a turn has ended: nothing of it slows a start. */
export interface DeferredSaver {
  /** The workspace is prepared: there is something to keep from now on. */
  begin(task: Pick<AgentTask, 'max_workspace_bytes'>, restored: boolean): Promise<void>;
  /** Keeps it as at the end of a turn. Never rejects. */
  keep(turn: number): Promise<void>;
  /** A further turn begins: gives up what goes on. */
  abort(): Promise<void>;
}

export function deferredSaver(options: DeferredSaverOptions): DeferredSaver {
  let keeper: (() => Promise<WorkspaceSaver>) | undefined;
  return {
    async begin({ max_workspace_bytes: maxBytes = 0 }, restored) {
      const { workspace, ownFolders, env } = options;
      if (!ownFolders && maxBytes > 0) options.onNotKept(foreignFolders);
      const loaded = async () => {
        const { workspaceSaver } = await import('./workspace-saver.ts');
        const roots = ownFolders ? archivedFolders(workspace, env.HOME) : undefined;
        return workspaceSaver({ ...options, roots, maxBytes, restored });
      };
      let made: Promise<WorkspaceSaver> | undefined;
      keeper = () => {
        made ??= loaded();
        return made;
      };
      if (restored) await (await keeper()).known();
    },
    async keep(turn) {
      await (await keeper?.())?.keep(turn);
    },
    async abort() {
      await (await keeper?.())?.abort();
    },
  };
}
