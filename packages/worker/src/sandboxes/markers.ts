/** Marks by which this worker, and the next one of the same data folder, find the processes of sandboxes. */
import { findProcesses, killUntilGone } from '../state/processes.ts';

/** Returns the prefix of the label in the arguments of the first processes of sandboxes. The sandbox cannot change the label. */
export function ownerLabel(owner: string): string {
  return `runyard-sandbox:${owner}:`;
}

/** Returns the prefix of the marker in the environment of an agent and of its children, unless they remove it. */
export function ownerVariable(owner: string): string {
  return `RUNYARD_SANDBOX_OWNER=${owner}:`;
}

/** Log for warnings about processes that die slowly. */
export type SlowLog = { warn(fields: object, message: string): void };

/** Returns an `onSlow` that logs a warning. `fields` name the owner of the processes. */
export function logSlow(log: SlowLog, fields: object): (pids: readonly number[]) => void {
  return (pids) =>
    log.warn({ ...fields, pids }, 'processes of an ended sandbox are still there; waiting until they are gone');
}

/** Ends all processes with one of these marks. Resolves when the last is gone. */
export async function endMarked(
  marks: { readonly label: string; readonly variable: string },
  onSlow: (pids: readonly number[]) => void,
): Promise<void> {
  await killUntilGone(async () => {
    const [labelled, marked] = [
      await findProcesses('cmdline', marks.label),
      await findProcesses('environ', marks.variable),
    ];
    return [...new Set([...labelled, ...marked])];
  }, onSlow);
}
