import { readWaitingFile } from '@runyard/worker/waiting-file';
import type { Context } from '../context/context.ts';
import { harmlessLine } from '../terminal/harmless.ts';
import type { Finding } from './finding.ts';

/**
 * Reports the sandboxes in which agents of this data folder's worker wait for runs. Reports nothing if no worker runs, or if the
 * worker has no such sandboxes.
 */
export function checkWaitingSandboxes({ folder }: Pick<Context, 'folder'>): Finding[] {
  const state = readWaitingFile(folder.path);
  if (state === undefined) return [];
  const { wanted, ready, taken, failed, failure } = state.pool;
  const counts = `${ready} of ${wanted} ready; ${taken} taken and ${failed} failed since ${harmlessLine(state.since)}`;
  const finding = { name: 'warm sandboxes', detail: `${counts} (worker, process ${state.pid})` };
  if (failure === undefined) return [{ ...finding, level: wanted === 0 ? 'fact' : 'good' }];
  const detail = `${finding.detail}\nlast failure: ${harmlessLine(failure)}`;
  if (ready > 0) return [{ ...finding, level: 'fact', detail }];
  return [{ ...finding, level: 'note', detail, fix: 'runs start without them, only later: see the log of the worker' }];
}
