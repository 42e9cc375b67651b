import { Readable } from 'node:stream';
import type { ServiceClient } from '../service/client.ts';
import type { ArchivedFolder } from './archived-folders.ts';
import { fingerprint } from './fingerprint.ts';

export interface SaverOptions {
  readonly client: Pick<ServiceClient, 'upload' | 'uploadSnapshot'>;
  readonly workspace: string;
  /** The folders to save. Absent if they were not created for the run; then only files that the agent hands off are sent. */
  readonly folders: readonly ArchivedFolder[] | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Maximum size of the archive. 0: no archive is made. */
  readonly maxBytes: number;
  /** True: the workspace comes from an earlier execution, which may have left a snapshot. */
  readonly restored: boolean;
  /** Returns the files that the agent hands off. */
  readonly handedOff: () => readonly string[];
  /** Reports the changed files of the workspace. */
  readonly reportChanges: (signal: AbortSignal) => Promise<void>;
  /** Returns the id of the harness's session; undefined if another process cannot load the session. */
  readonly session: () => string | undefined;
  /** Called for each file or patch that the snapshot leaves out. */
  readonly onLeftOut: (name: string, reason: string) => void;
  /** Called when the archive was not saved. */
  readonly onNotSaved: (reason: string) => void;
  /** Stops all saving when it aborts. */
  readonly signal: AbortSignal;
}

/** Reports the beginning and the end of a checkpoint to the service. */
export interface CheckpointMarks {
  /** Marks the current position in the conversation. When the service has stored the mark, resolves with the number of the checkpoint. */
  begin(): Promise<number>;
  /** Reports that the files have not changed since the last archive. */
  unchanged(): void;
}

/**
 * Saves the workspace and the home with the run. The next execution restores the archive. The snapshot of patches and files is for
 * people who continue the work outside of a sandbox.
 */
export interface WorkspaceSaver {
  /** Marks the current state of the folders as saved. */
  markSaved(): Promise<void>;
  /** Saves the folders as they are after this turn. Never rejects, because a run does not fail if its folders cannot be saved. */
  save(turn: number): Promise<void>;
  /**
   * Saves an archive of the folders as they are in the middle of this turn, if no archive is being saved. `save` and `abort` stop the
   * checkpoint. Rejects if the checkpoint failed.
   */
  checkpoint(turn: number, marks: CheckpointMarks): Promise<void>;
  /**
   * Sends a snapshot of the files as they are in the middle of this turn, if nothing is being saved. `save` and `abort` stop it. Rejects if
   * the snapshot failed.
   */
  showFiles(turn: number): Promise<void>;
  /** Keeps the snapshot of this turn, which is stored: `save` does not replace it. */
  keepSnapshot(turn: number): void;
  /** Stops saving. Resolves when all processes of the saver have ended. */
  abort(): Promise<void>;
}

/** Sends archives of the folders. Only one method may run at a time. */
function archiveSender(options: SaverOptions) {
  const { client, folders, env, maxBytes } = options;
  let archivedState: string | undefined;
  /** True: this execution has itself sent an archive. */
  let hasArchive = false;
  /** True: the last archive that this execution sent was a checkpoint. */
  let isCheckpoint = false;

  async function saveArchive(turn: number, state: string | undefined, signal: AbortSignal): Promise<void> {
    // Report empty folders after each turn, because the service cannot tell whether they are still empty.
    if (state !== undefined && state !== 'empty' && state === archivedState && !isCheckpoint) return;
    await send({ turn }, state, signal);
  }

  async function takeCheckpoint(
    turn: number,
    marks: CheckpointMarks,
    stateOf: () => Promise<string | undefined>,
    signal: AbortSignal,
  ): Promise<void> {
    // Mark the position before reading the files, so that the archive contains the effects of all events before the mark.
    const checkpoint = await marks.begin();
    const state = await stateOf();
    if (state === undefined || state !== archivedState) return await send({ turn, checkpoint }, state, signal);
    if (!hasArchive) return;
    marks.unchanged();
    isCheckpoint = true;
  }

  /** Sends an archive of the folders. */
  async function send(
    { turn, checkpoint }: { turn: number; checkpoint?: number },
    state: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (folders === undefined || maxBytes === 0) return;
    const session = options.session();
    const ofSession = session === undefined || session.length > 500 ? '' : `&session_id=${encodeURIComponent(session)}`;
    const ofCheckpoint = checkpoint === undefined ? '' : `&checkpoint=${checkpoint}`;
    const path = `/api/v1/harness-support/workspace?turn=${turn}${ofCheckpoint}${ofSession}`;
    const type = 'application/octet-stream';
    // Set the variable before the upload, because the service may store the checkpoint even if its answer is lost.
    isCheckpoint ||= checkpoint !== undefined;
    if (state === 'empty') {
      await client.upload(path, () => Readable.from([]), 0, type, { signal });
    } else {
      const { packFolders } = await import('./pack.ts');
      const archive = () => packFolders(folders, { env, maxBytes, signal });
      await client.upload(path, archive, undefined, type, { signal });
    }
    archivedState = state;
    hasArchive = true;
    isCheckpoint = checkpoint !== undefined;
  }

  return {
    saveArchive,
    takeCheckpoint,
    /** Remembers that the archive of an earlier execution has all files of the folders. */
    markSaved: (state: string | undefined) => {
      archivedState = state;
    },
  };
}

/** Sends snapshots of the changed files. Only one method may run at a time. */
function snapshotSender(options: SaverOptions) {
  const { client, folders, env } = options;
  let snapshotState: string | undefined;
  let hasSnapshot = options.restored;
  let keptTurn: number | undefined;
  /**
   * True: a snapshot was sent after the last report of the changed files. A report may fail, the next turn may stop it, and an earlier
   * execution may have ended before its report.
   */
  let isReportDue = options.restored;

  async function saveSnapshot(turn: number, stateBefore: string | undefined, signal: AbortSignal): Promise<void> {
    if (turn === keptTurn) isReportDue = true;
    else await sendFiles(turn, stateBefore, options.onLeftOut, signal);
    if (!isReportDue) return;
    await options.reportChanges(signal);
    isReportDue = false;
  }

  /** Sends a snapshot if something has changed since the last one. */
  async function sendFiles(
    turn: number,
    stateBefore: string | undefined,
    onLeftOut: SaverOptions['onLeftOut'],
    signal: AbortSignal,
  ): Promise<void> {
    const handedOff = options.handedOff();
    const state = stateBefore && `${stateBefore} ${handedOff.join('\0')}`;
    if (state !== undefined && state === snapshotState) return;
    if (stateBefore === 'empty' && !hasSnapshot) return;
    const { workspace } = options;
    const { sendSnapshot } = await import('../handoff/send.ts');
    const isThere = await sendSnapshot({
      ...{ client, workspace, env, handedOff, turn, signal, onLeftOut },
      withPatches: folders !== undefined,
      evenEmpty: hasSnapshot,
    });
    hasSnapshot ||= isThere;
    snapshotState = state;
    isReportDue = true;
  }

  async function sendFilesInTurn(turn: number, state: string | undefined, signal: AbortSignal): Promise<void> {
    let isWhole = true;
    const onLeftOut = () => {
      isWhole = false;
    };
    await sendFiles(turn, state, onLeftOut, signal);
    // Only the snapshot at the end of the turn reports what it leaves out, so it must not be omitted as unchanged.
    if (!isWhole) snapshotState = undefined;
  }

  return {
    saveSnapshot,
    sendFilesInTurn,
    markSaved: (state: string | undefined) => {
      snapshotState = state && `${state} `;
    },
    keep: (turn: number) => {
      [keptTurn, hasSnapshot, snapshotState] = [turn, true, undefined];
    },
  };
}

export function workspaceSaver(options: SaverOptions): WorkspaceSaver {
  const { folders } = options;
  const archives = archiveSender(options);
  const snapshots = snapshotSender(options);
  let saving: { turn: number; done: Promise<void>; abort: AbortController } | undefined;
  /** A checkpoint or a snapshot in the middle of a turn. */
  let inTurn: { done: Promise<unknown>; abort: AbortController } | undefined;

  /** Returns a fingerprint of the folders. Undefined means that the folders count as changed, because no fingerprint could be computed. */
  async function stateOfFolders(signal: AbortSignal): Promise<string | undefined> {
    return folders && (await fingerprint(folders, signal).catch(() => undefined));
  }

  /** Does work in the middle of a turn, if no other work is in progress. Does not reject if `save` or `abort` stopped it. */
  async function meanwhile(work: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
    if (saving !== undefined || inTurn !== undefined) return;
    const abortThis = new AbortController();
    const done = work(AbortSignal.any([abortThis.signal, options.signal]));
    inTurn = { done, abort: abortThis };
    try {
      await done;
    } catch (error) {
      if (!abortThis.signal.aborted) throw error;
    } finally {
      inTurn = undefined;
    }
  }

  async function saveBoth(turn: number, signal: AbortSignal): Promise<void> {
    const state = await stateOfFolders(signal);
    const unlessAborted = (report: (reason: string) => void) => (error: Error) => {
      if (!signal.aborted) report(error.message);
    };
    await archives.saveArchive(turn, state, signal).catch(unlessAborted(options.onNotSaved));
    if (signal.aborted) return;
    await snapshots
      .saveSnapshot(turn, state, signal)
      .catch(unlessAborted((reason) => options.onLeftOut('snapshot', reason)));
  }

  async function abort(): Promise<void> {
    await abortInTurn();
    saving?.abort.abort(new Error('the next turn begins'));
    await saving?.done;
    saving = undefined;
  }

  async function abortInTurn(): Promise<void> {
    inTurn?.abort.abort(new Error('the turn has ended'));
    await inTurn?.done.catch(() => {});
  }

  return {
    async markSaved() {
      const state = await stateOfFolders(options.signal);
      archives.markSaved(state);
      snapshots.markSaved(state);
    },
    async save(turn) {
      await abortInTurn();
      if (saving !== undefined && saving.turn !== turn) await abort();
      if (saving === undefined) {
        const abortThis = new AbortController();
        const done = saveBoth(turn, AbortSignal.any([abortThis.signal, options.signal]));
        saving = { turn, done, abort: abortThis };
      }
      await saving.done;
    },
    checkpoint: (turn, marks) =>
      meanwhile((signal) => archives.takeCheckpoint(turn, marks, () => stateOfFolders(signal), signal)),
    showFiles: (turn) =>
      meanwhile(async (signal) => snapshots.sendFilesInTurn(turn, await stateOfFolders(signal), signal)),
    keepSnapshot: snapshots.keep,
    abort,
  };
}
