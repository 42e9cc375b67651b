import { Readable } from 'node:stream';
import type { ServiceClient } from '../service/client.ts';
import type { ArchivedFolder } from './archived-folders.ts';
import { fingerprint } from './fingerprint.ts';

export interface SaverOptions {
  client: Pick<ServiceClient, 'upload' | 'uploadSnapshot'>;
  workspace: string;
  /** Absent: the folders were not made for the run. Only files that the agent declared are sent then. */
  roots: readonly ArchivedFolder[] | undefined;
  env: Readonly<Record<string, string | undefined>>;
  /** Of the archive; 0: none is kept. */
  maxBytes: number;
  /** The workspace is that of an earlier execution, which may have left a snapshot. */
  restored: boolean;
  declared: () => readonly string[];
  session: () => string | undefined;
  onLeftOut: (what: string, reason: string) => void;
  /** Ends all of it. */
  signal: AbortSignal;
  /** The archive was not kept. */
  onNotKept: (reason: string) => void;
}

/** Keeps workspace and home with the run, so that a further execution finds them, and a snapshot for whoever goes on elsewhere. */
export interface WorkspaceSaver {
  /** The folders are as the run has them kept already. */
  known(): Promise<void>;
  /** Keeps them as at the end of a turn. Never rejects: a run does not fail for it. */
  keep(turn: number): Promise<void>;
  /** Gives up what goes on; resolves as soon as nothing of it runs. */
  abort(): Promise<void>;
}

export function workspaceSaver(options: SaverOptions): WorkspaceSaver {
  const { roots, env, maxBytes } = options;
  let kept: string | undefined;
  let sent: string | undefined;
  let hasSnapshot = options.restored;
  let running: { turn: number; done: Promise<void>; abort: AbortController } | undefined;

  /** Undefined: it cannot be told, so everything counts as changed. */
  async function stateOf(signal: AbortSignal): Promise<string | undefined> {
    return roots && (await fingerprint(roots, signal).catch(() => undefined));
  }

  async function keepArchive(turn: number, now: string | undefined, signal: AbortSignal): Promise<void> {
    if (roots === undefined || maxBytes === 0 || (now !== undefined && now === kept)) return;
    const session = options.session();
    const ofSession = session === undefined || session.length > 500 ? '' : `&session_id=${encodeURIComponent(session)}`;
    const path = `/api/v1/harness-support/workspace?turn=${turn}${ofSession}`;
    const type = 'application/octet-stream';
    if (now === 'empty') {
      await options.client.upload(path, () => Readable.from([]), 0, type, { signal });
    } else {
      const { packFolders } = await import('./pack.ts');
      const archive = () => packFolders(roots, { env, maxBytes, signal });
      await options.client.upload(path, archive, undefined, type, { signal });
    }
    kept = now;
  }

  async function keepSnapshot(turn: number, now: string | undefined, signal: AbortSignal): Promise<void> {
    const declared = options.declared();
    const state = now && `${now} ${declared.join('\0')}`;
    if (state !== undefined && state === sent) return;
    if (now === 'empty' && !hasSnapshot) return;
    const { client, workspace, onLeftOut } = options;
    const { sendSnapshot } = await import('../handoff/send.ts');
    const isThere = await sendSnapshot({
      ...{ client, workspace, env, declared, turn, signal, onLeftOut },
      withPatches: roots !== undefined,
      evenEmpty: hasSnapshot,
    });
    hasSnapshot ||= isThere;
    sent = state;
  }

  async function attempt(turn: number, signal: AbortSignal): Promise<void> {
    const now = await stateOf(signal);
    const told = (tell: (reason: string) => void) => (error: Error) => {
      if (!signal.aborted) tell(error.message);
    };
    await keepArchive(turn, now, signal).catch(told(options.onNotKept));
    if (signal.aborted) return;
    await keepSnapshot(turn, now, signal).catch(told((reason) => options.onLeftOut('snapshot', reason)));
  }

  async function abortRunning(): Promise<void> {
    running?.abort.abort(new Error('the run goes on'));
    await running?.done;
    running = undefined;
  }

  return {
    async known() {
      kept = await stateOf(options.signal);
      sent = kept && `${kept} `;
    },
    async keep(turn) {
      if (running !== undefined && running.turn !== turn) await abortRunning();
      if (running === undefined) {
        const abort = new AbortController();
        const done = attempt(turn, AbortSignal.any([abort.signal, options.signal]));
        running = { turn, done, abort };
      }
      await running.done;
    },
    abort: abortRunning,
  };
}
