import type { FreshCheck, StartFreshCheckResponse } from '@runyard/contract/agent/fresh-checks';
import type { RunCheck } from '@runyard/contract/runs/checks';
import { delay } from '@runyard/system/backoff';
import { gitRepositories } from '../handoff/git-repositories.ts';
import { sendSnapshot } from '../handoff/send.ts';
import type { ServiceClient } from '../service/client.ts';
import { type BaseCommits, faultOfBase } from './check-diff.ts';
import type { CheckResult } from './run-checks.ts';

export interface FreshCheckOptions {
  readonly client: Pick<ServiceClient, 'ask' | 'upload' | 'uploadSnapshot'>;
  readonly workspace: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly base: BaseCommits;
  /** Absolute paths of the files that the agent hands off. */
  readonly handedOff: readonly string[];
  /** Number of the turn in the execution. */
  readonly turn: number;
  /** Number of the round of checks in the turn. */
  readonly attempt: number;
  readonly signal: AbortSignal;
}

/** Longest wait in one request, so that proxies do not close the connection. */
const longestCallMs = 25_000;
/** Time for the service to cancel a check that is not needed any more. */
const cancelMs = 3_000;

/**
 * Stores the changes of the turn, all or none. Throws if the patch of a repository cannot be stored: a check without this patch would pass
 * for the wrong reason.
 */
export async function storeChanges({ workspace, base, ...options }: FreshCheckOptions): Promise<void> {
  const fault = await faultOfBase(workspace, base);
  if (fault !== undefined) throw new Error(fault);
  const leftOut: string[] = [];
  await sendSnapshot({
    ...options,
    workspace,
    withPatches: true,
    evenEmpty: true,
    onLeftOut: (name, reason) => leftOut.push(`${name}: ${reason}`),
  });
  const ofPatches = leftOut.find((text) => /^[^:]*\.patch: /.test(text));
  if (ofPatches !== undefined) throw new Error(`the changes could not be stored: ${ofPatches}`);
  if ((await gitRepositories(workspace)).length < base.size) throw new Error('a repository was removed');
}

/** Runs a check in a fresh sandbox, and waits for it. Cancels it when `signal` aborts. `onStarted` gets the id of its run. */
export async function runFreshCheck(
  { name }: RunCheck,
  { client, turn, attempt, signal }: FreshCheckOptions,
  onStarted: (checkRunId: string) => void,
): Promise<CheckResult> {
  const body = { turn, attempt, name };
  const { check_run_id: id } = await client.ask<StartFreshCheckResponse>('POST', 'fresh-checks', { body, signal });
  onStarted(id);
  try {
    for (;;) {
      const options = { signal, idleTimeoutMs: longestCallMs + 15_000, lane: 'waits' } as const;
      const path = `fresh-checks/${id}?wait_ms=${longestCallMs}`;
      const { state, exit_code, output_tail, error = 'it failed' } = await client.ask<FreshCheck>('GET', path, options);
      if (state === 'running') continue;
      return {
        ...(exit_code === undefined ? {} : { exit_code }),
        ...(output_tail === undefined ? {} : { output_tail }),
        ...(state === 'failed' ? { error } : {}),
      };
    }
  } finally {
    if (signal.aborted) {
      const cancelled = client.ask('POST', `fresh-checks/${id}/cancel`, {
        body: {},
        signal: AbortSignal.timeout(cancelMs),
      });
      await Promise.race([cancelled.catch(() => {}), delay(cancelMs)]);
    }
  }
}
