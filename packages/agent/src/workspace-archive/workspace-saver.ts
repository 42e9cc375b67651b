import { Readable } from 'node:stream';
import type { ServiceClient } from '../service/client.ts';
import type { ArchivedFolder } from './archived-folders.ts';
import { fingerprint } from './fingerprint.ts';

export interface SaverOptions {
  readonly client: Pick<ServiceClient, 'upload' | 'uploadSnapshot'>;
  readonly workspace: string;
  /** Absent: the folders were not made for the run, so only files that the agent hands off are sent. */
  readonly folders: readonly ArchivedFolder[] | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Limit of the archive; 0: there is no archive. */
  readonly maxBytes: number;
  /** The workspace is that of an earlier execution, which may have left a snapshot. */
  readonly restored: boolean;
  /** Returns the files that the agent hands off. */
  readonly handedOff: () => readonly string[];
  /** Returns the session of the harness, if another process can load it. */
  readonly session: () => string | undefined;
  /** Called when something is not in the snapshot. */
  readonly onLeftOut: (name: string, reason: string) => void;
  /** Called when the archive was not saved. */
  readonly onNotSaved: (reason: string) => void;
  /** Ends all saving. */
  readonly signal: AbortSignal;
}

/**
 * Saves workspace and home with the run, as an archive for the next execution, and as a snapshot of patches and files for anyone who
 * continues the work elsewhere.
 */
export interface WorkspaceSaver {
  /** Marks the present state of the folders as saved. */
  markSaved(): Promise<void>;
  /** Saves the folders as they are after this turn. Never rejects, because a run does not fail for it. */
  save(turn: number): Promise<void>;
  /** Stops saving; resolves when nothing of it runs any more. */
  abort(): Promise<void>;
}

export function workspaceSaver(options: SaverOptions): WorkspaceSaver {
  const { client, folders, env, maxBytes } = options;
  let archivedState: string | undefined;
  let snapshotState: string | undefined;
  let hasSnapshot = options.restored;
  let saving: { turn: number; done: Promise<void>; abort: AbortController } | undefined;

  /** Returns the state of the folders; undefined if it cannot be told, so that it counts as changed. */
  async function stateOfFolders(signal: AbortSignal): Promise<string | undefined> {
    return folders && (await fingerprint(folders, signal).catch(() => undefined));
  }

  async function saveArchive(turn: number, state: string | undefined, signal: AbortSignal): Promise<void> {
    if (folders === undefined || maxBytes === 0 || (state !== undefined && state === archivedState)) return;
    const session = options.session();
    const ofSession = session === undefined || session.length > 500 ? '' : `&session_id=${encodeURIComponent(session)}`;
    const path = `/api/v1/harness-support/workspace?turn=${turn}${ofSession}`;
    const type = 'application/octet-stream';
    if (state === 'empty') {
      await client.upload(path, () => Readable.from([]), 0, type, { signal });
    } else {
      const { packFolders } = await import('./pack.ts');
      const archive = () => packFolders(folders, { env, maxBytes, signal });
      await client.upload(path, archive, undefined, type, { signal });
    }
    archivedState = state;
  }

  async function saveSnapshot(turn: number, stateBefore: string | undefined, signal: AbortSignal): Promise<void> {
    const handedOff = options.handedOff();
    const state = stateBefore && `${stateBefore} ${handedOff.join('\0')}`;
    if (state !== undefined && state === snapshotState) return;
    if (stateBefore === 'empty' && !hasSnapshot) return;
    const { workspace, onLeftOut } = options;
    const { sendSnapshot } = await import('../handoff/send.ts');
    const isThere = await sendSnapshot({
      ...{ client, workspace, env, handedOff, turn, signal, onLeftOut },
      withPatches: folders !== undefined,
      evenEmpty: hasSnapshot,
    });
    hasSnapshot ||= isThere;
    snapshotState = state;
  }

  async function saveBoth(turn: number, signal: AbortSignal): Promise<void> {
    const state = await stateOfFolders(signal);
    const unlessAborted = (report: (reason: string) => void) => (error: Error) => {
      if (!signal.aborted) report(error.message);
    };
    await saveArchive(turn, state, signal).catch(unlessAborted(options.onNotSaved));
    if (signal.aborted) return;
    await saveSnapshot(turn, state, signal).catch(unlessAborted((reason) => options.onLeftOut('snapshot', reason)));
  }

  async function abort(): Promise<void> {
    saving?.abort.abort(new Error('the next turn begins'));
    await saving?.done;
    saving = undefined;
  }

  return {
    async markSaved() {
      archivedState = await stateOfFolders(options.signal);
      snapshotState = archivedState && `${archivedState} `;
    },
    async save(turn) {
      if (saving !== undefined && saving.turn !== turn) await abort();
      if (saving === undefined) {
        const abortThis = new AbortController();
        const done = saveBoth(turn, AbortSignal.any([abortThis.signal, options.signal]));
        saving = { turn, done, abort: abortThis };
      }
      await saving.done;
    },
    abort,
  };
}
