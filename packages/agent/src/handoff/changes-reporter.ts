import { delay } from '@runyard/system/backoff';
import { monotonicMs } from '../builtin-modules.ts';
import type { ServiceClient } from '../service/client.ts';

export interface ChangesReporterOptions {
  readonly client: Pick<ServiceClient, 'ask'>;
  readonly workspace: string;
  /** False: the workspace was not created for the run, so its files are not reported. */
  readonly ownFolders: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Sends the files of a workspace without git repositories, so that a person who views the changes can download the files. */
  readonly sendFiles: () => Promise<void>;
  /** Ends all reports. */
  readonly signal: AbortSignal;
  /** Minimum pause between a report and the next report that `ask` causes. Default: 5 s. */
  readonly restMs?: number;
}

/**
 * Reports the changed files of the workspace. The reporter sends one report after the other, so that an older report never replaces a newer
 * report.
 */
export interface ChangesReporter {
  /** Reports the current changes. Rejects if the report fails. */
  report(signal: AbortSignal): Promise<void>;
  /**
   * Reports the changes soon. Is called while a person views the changes. After each report, the reporter pauses for `restMs` or for
   * ten times the duration of the report, whichever is longer. Never throws.
   */
  ask(): void;
}

export function changesReporter(options: ChangesReporterOptions): ChangesReporter {
  const { client, workspace, env, restMs = 5_000 } = options;
  let last: Promise<void> = Promise.resolve();
  let isAsked = false;
  let nextMs = 0;
  let hasReported = false;

  async function send(signal: AbortSignal, isAsked: boolean): Promise<void> {
    signal.throwIfAborted();
    const began = monotonicMs();
    const { readChanges } = await import('./changes.ts');
    const body = await readChanges({ workspace, env, signal });
    if (body.repositories.length > 0 || hasReported) {
      await client.ask('POST', 'changes', { body, signal });
      hasReported = true;
    }
    if (body.repositories.length === 0 && isAsked) await options.sendFiles();
    const ended = monotonicMs();
    nextMs = ended + Math.max(restMs, 10 * (ended - began));
  }
  const report = async (signal: AbortSignal, isAsked = false) => {
    if (!options.ownFolders) return;
    const sent = last.then(() => send(AbortSignal.any([signal, options.signal]), isAsked));
    last = sent.catch(() => {});
    await sent;
  };

  return {
    report: (signal) => report(signal),
    ask() {
      if (isAsked) return;
      isAsked = true;
      const answer = async () => {
        await delay(Math.max(0, nextMs - monotonicMs()), options.signal);
        isAsked = false;
        await report(options.signal, true);
      };
      answer().catch((error: Error) => {
        isAsked = false;
        if (!options.signal.aborted) process.stderr.write(`agent: changed files: ${error.message}\n`);
      });
    },
  };
}
